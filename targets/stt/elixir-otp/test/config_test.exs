defmodule Gateway.ConfigTest do
  use ExUnit.Case, async: true

  alias Gateway.Config

  test "defaults are those of the contract" do
    config = Config.load!(fn _name -> nil end)
    assert config.port == 3000
    assert %{host: '127.0.0.1', port: 9000, path: "/infer", cpu_passes: 4} = config.inference
    assert config.session.flush_interval_ns == 1_000_000_000
    assert config.phase_jitter_ns == 1_000_000_000
    assert config.session.buffer_frames_max == 500
    assert config.session.overflow_policy == :drop_oldest
    assert config.session.outbox_messages_max == 4
    assert config.auth_token_hash == nil
    assert config.read_pace_ms == 0
  end

  test "INFERENCE_HTTP_CLIENTS is for each worker" do
    connections = fn variables -> Config.load!(&variables[&1]).inference.connections end
    assert connections.(%{"WORKER_THREADS" => "3"}) == 3
    assert connections.(%{"WORKER_THREADS" => "3", "INFERENCE_HTTP_CLIENTS" => "2"}) == 6
  end

  test "URLs" do
    load = fn url -> Config.load!(&if(&1 == "INFERENCE_URL", do: url)).inference end
    assert %{host: 'example.org', port: 80, path: "/infer"} = load.("http://example.org")
    assert %{host: '::1', port: 81, path: "/base/infer"} = load.("http://[::1]:81/base/")
  end

  for {name, value} <- [
        {"PORT", "0"},
        {"PORT", "65536"},
        {"PORT", "+80"},
        {"PORT", ""},
        {"WORKER_THREADS", "0"},
        {"WORKER_THREADS", "two"},
        {"INFERENCE_URL", "127.0.0.1:9000"},
        {"INFERENCE_URL", "https://example.org"},
        {"INFERENCE_URL", "not a url"},
        {"INFERENCE_URL", ""},
        {"INFERENCE_HTTP_CLIENTS", "0"},
        {"INFERENCE_TIMEOUT_MS", "-1"},
        {"FLUSH_INTERVAL_MS", "0"},
        {"FLUSH_PHASE_JITTER_MS", "1.5"},
        {"CPU_PASSES", "4294967296"},
        {"MAX_BUFFER_FRAMES", "x\ny"},
        {"MAX_SESSIONS", "-1"},
        {"MAX_BUFFER_FRAMES", "0"},
        {"OVERFLOW_POLICY", "Drop_Oldest"},
        {"MAX_INFLIGHT_JOBS", "1.5"},
        {"OUTBOX_MESSAGES", "0"},
        {"START_TIMEOUT_MS", "0"},
        {"DRAIN_TIMEOUT_MS", "99999999999999"},
        {"READ_PACE_MS", "251"}
      ] do
    test "#{name}=#{inspect(value)} is refused in one line that names it" do
      error = assert_raise Config.Error, fn -> Config.load!(&if(&1 == unquote(name), do: unquote(value))) end
      assert String.starts_with?(error.message, unquote(name) <> "=")
      refute String.contains?(error.message, "\n")
    end
  end
end
