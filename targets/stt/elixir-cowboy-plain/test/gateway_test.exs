defmodule Gateway.GatewayTest do
  @moduledoc "The whole tree over real sockets: gun is the client, a cowboy listener the inference server."
  use ExUnit.Case, async: false

  alias Gateway.{Config, Http, Jobs, Sessions}

  @answer ~s({"rms":1.5,"zero_crossings":7,"checksum":9,"samples":1280,"transcript":"now","audio_bytes":640})

  defmodule Stub do
    @moduledoc false
    def init(request, {test, respond} = state) do
      {:ok, pcm, request} = :cowboy_req.read_body(request)
      send(test, {:asked, :cowboy_req.version(request), byte_size(pcm)})

      case respond do
        :never -> Process.sleep(:infinity)
        {status, body} -> {:ok, :cowboy_req.reply(status, %{}, body, request), state}
      end
    end
  end

  setup do
    on_exit(fn -> :cowboy.stop_listener(Stub) end)
  end

  defp start(respond, variables \\ %{}) do
    dispatch = :cowboy_router.compile([{:_, [{"/infer", Stub, {self(), respond}}]}])
    {:ok, _listener} = :cowboy.start_clear(Stub, [port: 0], %{env: %{dispatch: dispatch}})

    variables =
      Map.merge(
        %{
          "INFERENCE_URL" => "http://127.0.0.1:#{:ranch.get_port(Stub)}",
          "FLUSH_INTERVAL_MS" => "50",
          "FLUSH_PHASE_JITTER_MS" => "0"
        },
        variables
      )

    {:ok, config} = Config.load(&variables[&1])
    tree = {Gateway.Application, :start_link, [%{config | port: 0}]}
    start_supervised!(%{id: :gateway, type: :supervisor, start: tree})
    # The connection to the inference server takes a moment.
    wait_until(fn -> :ets.info(Gateway.Inference, :size) == config.inference.connections end)
  end

  defp wait_until(condition, tries \\ 200) do
    cond do
      condition.() -> :ok
      tries == 0 -> flunk("it did not come to pass")
      true -> Process.sleep(10) && wait_until(condition, tries - 1)
    end
  end

  defp connect do
    {:ok, client} = :gun.open(~c"127.0.0.1", :ranch.get_port(Http), %{protocols: [:http]})
    {:ok, :http} = :gun.await_up(client)
    client
  end

  defp get(path) do
    client = connect()
    stream = :gun.get(client, path)
    {:response, fin, status, _headers} = :gun.await(client, stream)
    {:ok, body} = if fin == :nofin, do: :gun.await_body(client, stream), else: {:ok, ""}
    {status, body}
  end

  defp upgrade(headers \\ []) do
    client = connect()
    stream = :gun.ws_upgrade(client, "/ws/stt", headers)

    case :gun.await(client, stream) do
      {:upgrade, _protocols, _headers} -> {client, stream}
      {:response, _fin, status, headers} -> {status, Map.new(headers)}
    end
  end

  defp session do
    {client, stream} = upgrade()
    :gun.ws_send(client, stream, {:text, ~s({"type":"start"})})
    {client, stream}
  end

  defp audio({client, stream}, frames) do
    :gun.ws_send(client, stream, List.duplicate({:binary, <<0::5120>>}, frames))
  end

  defp message({client, stream}) do
    case :gun.await(client, stream, 2000) do
      {:ws, {:text, text}} -> JSON.decode!(text)
      {:ws, other} -> other
    end
  end

  test "audio is answered, over HTTP/2, and counted" do
    start({200, @answer})
    session = session()
    audio(session, 3)
    assert %{"type" => "partial", "frames" => 3, "newest_frame_seq" => 3} = message(session)
    assert_receive {:asked, :"HTTP/2", 1920}
    {200, metrics} = get("/metrics")
    assert metrics =~ "stt_sessions 1\n"
    assert metrics =~ "stt_frames_total 3\n"
    assert metrics =~ "stt_partials_total 1\n"
    assert metrics =~ ~s(stt_buffer_frames_bucket{le="5"} 1\n)
    :gun.close(elem(session, 0))
    wait_until(fn -> Sessions.count() == 0 end)
  end

  for {status, body, kind} <- [
        {429, "", "http_429"},
        {500, "?", "http_5xx"},
        {200, "{}", "parse_error"}
      ] do
    test "a failure is named, and the session goes on: #{kind}" do
      start({unquote(status), unquote(body)})
      session = session()

      for seq <- 1..2 do
        audio(session, 1)
        assert %{"kind" => unquote(kind), "newest_frame_seq" => ^seq} = message(session)
      end

      assert Jobs.count() == 0
    end
  end

  test "an answer that does not come is a timeout" do
    start(:never, %{"INFERENCE_TIMEOUT_MS" => "100"})
    session = session()
    audio(session, 1)
    assert %{"kind" => "timeout", "inflight_gateway_batches" => 0} = message(session)
  end

  test "a server that has gone away is a connection reset" do
    start(:never)
    session = session()
    audio(session, 1)
    assert_receive {:asked, _version, 640}
    :cowboy.stop_listener(Stub)
    assert %{"kind" => "connection_reset", "retryable" => true} = message(session)
  end

  test "a killed session gives its place back, and its client is told" do
    start(:never, %{"MAX_SESSIONS" => "1"})
    session = session()
    assert {503, %{"retry-after" => "1"}} = upgrade()
    [{_id, server, _type, _modules}] = DynamicSupervisor.which_children(Sessions)
    Process.exit(server, :kill)
    assert {:close, 1011, _reason} = message(session)
    assert {client, _stream} = upgrade()
    assert is_pid(client)
  end

  test "a drain answers what is in flight, refuses, and closes with 1001" do
    start({200, @answer})
    session = session()
    audio(session, 1)
    assert_receive {:asked, _version, 640}
    drain = Task.async(fn -> Sessions.drain(1000) end)
    assert %{"type" => "partial"} = message(session)
    assert {:close, 1001, _reason} = message(session)
    assert Task.await(drain) == :ok
    assert {503, _body} = get("/health")
    assert {503, _headers} = upgrade()
  end

  test "no start in time" do
    start(:never, %{"START_TIMEOUT_MS" => "50"})
    assert {:close, 1002, _reason} = message(upgrade())
  end

  test "the token comes before the room" do
    start(:never, %{"AUTH_TOKEN" => "secret", "MAX_SESSIONS" => "1"})
    assert {401, _headers} = upgrade()
    assert {401, _headers} = upgrade([{"authorization", "Bearer secreT"}])
    assert {client, _stream} = upgrade([{"authorization", "Bearer secret"}])
    assert is_pid(client)
    assert {401, _headers} = upgrade()
    assert {503, _headers} = upgrade([{"authorization", "Bearer secret"}])
  end

  test "the HTTP surface" do
    start(:never)

    for {path, status} <- [{"/health", 200}, {"/ws/stt", 426}, {"/", 404}, {"/ws/stt/more", 404}] do
      assert {^status, _body} = get(path)
    end
  end
end
