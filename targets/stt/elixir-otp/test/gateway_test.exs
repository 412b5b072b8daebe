defmodule Gateway.GatewayTest do
  @moduledoc "The whole gateway over real sockets, with an inference server of the test's own."
  use ExUnit.Case, async: false

  alias Gateway.{Admission, Client, Config, Http, InferenceServer, Reference}

  # Starts both with these variables; the gateway's port.
  defp start(respond, variables \\ %{}) do
    inference = InferenceServer.start(respond)
    on_exit(fn -> InferenceServer.stop() end)

    variables =
      Map.merge(
        %{
          "INFERENCE_URL" => "http://127.0.0.1:#{inference}",
          "FLUSH_INTERVAL_MS" => "100",
          "FLUSH_PHASE_JITTER_MS" => "0"
        },
        variables
      )

    config = %{Config.load!(&variables[&1]) | port: 0}
    start_supervised!(%{id: :gateway, type: :supervisor, start: {Gateway.Application, :start_link, [config]}})
    # A connection to the inference server takes a moment to come up.
    wait_until(fn -> :ets.info(Gateway.Inference, :size) > 0 end)
    Http.port()
  end

  defp wait_until(condition, tries \\ 200) do
    cond do
      condition.() -> :ok
      tries == 0 -> flunk("it did not come to pass")
      true -> Process.sleep(10) && wait_until(condition, tries - 1)
    end
  end

  defp metrics(port) do
    {_socket, answer} = Client.request(port, "/metrics")
    answer
  end

  for pace_ms <- ["0", "20"] do
    test "the golden frame, over HTTP/2, read at a pace of #{pace_ms} ms" do
      port = start(:answer, %{"READ_PACE_MS" => unquote(pace_ms)})
      socket = Client.session(port)
      :ok = :gen_tcp.send(socket, Client.frame(2, Reference.frame(0, 1)))
      assert {:text, partial} = Client.receive_frame(socket)
      assert_receive {:inference_request, :"HTTP/2", 640}

      assert %{
               "type" => "partial",
               "checksum" => 1_745_339_397,
               "transcript" => "now",
               "oldest_frame_seq" => 1,
               "frames" => 1
             } = partial

      :ok = :gen_tcp.send(socket, Client.frame(9, "hello") <> Client.frame(8, <<1000::16>>))
      assert Client.receive_frame(socket) == {:pong, "hello"}
      assert Client.receive_frame(socket) == {:close, <<1000::16>>}
      assert :gen_tcp.recv(socket, 0, 1000) == {:error, :closed}
      wait_until(fn -> Admission.sessions() == 0 end)
      assert metrics(port) =~ "stt_partials_total 1\n"
    end
  end

  test "the close code arrives although the client goes on sending" do
    port = start(:answer)
    socket = Client.session(port)
    audio = Client.frame(2, <<0::5120>>)
    :ok = :gen_tcp.send(socket, [Client.frame(2, "short") | List.duplicate(audio, 500)])
    assert Client.receive_frame(socket) == {:close, <<1003::16>>}
    assert :gen_tcp.recv(socket, 0, 1000) == {:error, :closed}
  end

  test "a session that is killed with a request in flight takes nothing with it" do
    port = start(:hang, %{"MAX_SESSIONS" => "2", "MAX_INFLIGHT_JOBS" => "1"})
    doomed = Client.session(port)
    :ok = :gen_tcp.send(doomed, Client.frame(2, <<0::5120>>))
    assert_receive {:inference_request, _version, 640}, 1000
    other = Client.session(port)
    assert {_socket, "HTTP/1.1 503" <> _rest} = Client.upgrade(port)
    assert {Admission.sessions(), Admission.jobs()} == {2, 1}

    {:ok, {_address, client_port}} = :inet.sockname(doomed)
    Process.exit(session_process(client_port), :kill)
    wait_until(fn -> {Admission.sessions(), Admission.jobs()} == {1, 0} end)

    # The other session gets the job, and there is room for a third.
    :ok = :gen_tcp.send(other, Client.frame(2, <<0::5120>>))
    assert_receive {:inference_request, _version, 640}, 1000
    assert {_socket, "HTTP/1.1 101" <> _rest} = Client.upgrade(port)
  end

  # The process that owns the gateway's end of a connection.
  defp session_process(client_port) do
    Enum.find_value(Port.list(), fn port ->
      with {:name, 'tcp_inet'} <- Port.info(port, :name),
           {:ok, {_address, ^client_port}} <- :inet.peername(port),
           {:connected, pid} <- Port.info(port, :connected) do
        pid
      else
        _ -> nil
      end
    end)
  end

  test "failures of inference are named, and the session goes on" do
    for {respond, kind} <- [{{429, ""}, "http_429"}, {{500, "?"}, "http_5xx"}, {{200, "{}"}, "parse_error"}] do
      port = start(respond)
      socket = Client.session(port)

      for seq <- 1..2 do
        :ok = :gen_tcp.send(socket, Client.frame(2, <<0::5120>>))
        assert {:text, %{"type" => "error", "kind" => ^kind, "newest_frame_seq" => ^seq}} = Client.receive_frame(socket)
      end

      :gen_tcp.close(socket)
      stop_supervised!(:gateway)
      InferenceServer.stop()
    end
  end

  test "an inference server that goes away is named, and found again" do
    port = start(:answer)
    socket = Client.session(port)
    InferenceServer.stop()
    :ok = :gen_tcp.send(socket, Client.frame(2, <<0::5120>>))
    assert {:text, %{"kind" => "connection_reset", "retryable" => true}} = Client.receive_frame(socket)
  end

  test "a drain closes with 1001" do
    port = start(:answer)
    socket = Client.session(port)
    # The start message has been seen once an answer to something later has come.
    :ok = :gen_tcp.send(socket, Client.frame(9, ""))
    assert Client.receive_frame(socket) == {:pong, ""}
    task = Task.async(fn -> Admission.drain(1000, 500) end)
    assert Client.receive_frame(socket) == {:close, <<1001::16>>}
    :gen_tcp.close(socket)
    assert Task.await(task) == :ok
    assert {_socket, "HTTP/1.1 503" <> _rest} = Client.request(port, "/health")
    assert {_socket, "HTTP/1.1 503" <> _rest} = Client.upgrade(port)
  end

  test "the token" do
    port = start(:answer, %{"AUTH_TOKEN" => "secret"})
    assert {_socket, "HTTP/1.1 401" <> _rest} = Client.upgrade(port)
    assert {_socket, "HTTP/1.1 401" <> _rest} = Client.upgrade(port, ["authorization: Bearer secreT"])
    assert {_socket, "HTTP/1.1 101" <> _rest} = Client.upgrade(port, ["authorization: Bearer secret"])
  end

  test "the HTTP surface" do
    port = start(:answer)

    for {path, status} <- [{"/health", 200}, {"/metrics", 200}, {"/ws/stt", 426}, {"/", 404}, {"/ws/stt/more", 404}] do
      assert {_socket, "HTTP/1.1 " <> rest} = Client.request(port, path)
      assert String.starts_with?(rest, Integer.to_string(status)), "#{path}: #{rest}"
    end
  end
end
