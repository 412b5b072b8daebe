defmodule Gateway.ConfigTest do
  use ExUnit.Case, async: true

  alias Gateway.Config

  defp load(variables), do: Config.load(&variables[&1])

  test "the defaults are the contract's" do
    {:ok, config} = load(%{"WORKER_THREADS" => "2"})
    assert config.port == 3000
    assert config.inference == %{host: ~c"127.0.0.1", port: 9000, path: "/infer", connections: 2}
    assert {config.flush_interval_ms, config.flush_phase_jitter_ms} == {1000, 1000}
    assert {config.max_buffer_frames, config.overflow_policy} == {500, :drop_oldest}
    assert {config.max_sessions, config.max_inflight_jobs, config.outbox_messages} == {0, 0, 4}
    assert {config.start_timeout_ms, config.inference_timeout_ms} == {10_000, 5000}
    assert {config.drain_timeout_ms, config.cpu_passes} == {5000, 4}
    assert config.auth_token_hash == nil
  end

  test "INFERENCE_HTTP_CLIENTS is for each worker" do
    {:ok, config} = load(%{"WORKER_THREADS" => "3", "INFERENCE_HTTP_CLIENTS" => "2"})
    assert config.inference.connections == 6
  end

  test "URLs" do
    url = fn text -> elem(load(%{"INFERENCE_URL" => text}), 1).inference end
    assert %{host: ~c"example.org", port: 80, path: "/infer"} = url.("http://example.org")
    assert %{host: ~c"::1", port: 81, path: "/base/infer"} = url.("http://[::1]:81/base/")
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
        {"INFERENCE_HTTP_CLIENTS", "0"},
        {"INFERENCE_TIMEOUT_MS", "-1"},
        {"FLUSH_INTERVAL_MS", "0"},
        {"FLUSH_PHASE_JITTER_MS", "1.5"},
        {"CPU_PASSES", "4294967296"},
        {"MAX_SESSIONS", "-1"},
        {"MAX_BUFFER_FRAMES", "x\ny"},
        {"OVERFLOW_POLICY", "Drop_Oldest"},
        {"MAX_INFLIGHT_JOBS", "1.5"},
        {"OUTBOX_MESSAGES", "0"},
        {"START_TIMEOUT_MS", "0"},
        {"DRAIN_TIMEOUT_MS", "99999999999999"}
      ] do
    test "#{name}=#{inspect(value)} is refused in one line that names it" do
      assert {:error, line} = load(%{unquote(name) => unquote(value)})
      assert String.starts_with?(line, unquote(name) <> "=")
      refute line =~ "\n"
    end
  end
end
