defmodule Gateway.Socket do
  @moduledoc """
  `/ws/stt`: the cowboy handler of the WebSocket. It checks what the client sends and hands it to the session.
  """

  @behaviour :cowboy_websocket

  alias Gateway.{Messages, SessionServer, Sessions}

  require Messages

  @options %{idle_timeout: :infinity, max_frame_size: 64 * 1024}

  @impl true
  def init(%{method: "GET"} = request, config) do
    if :cowboy_websocket.is_upgrade_request(request) do
      upgrade(request, config)
    else
      # cowboy answers 426.
      {:cowboy_websocket, request, nil, @options}
    end
  end

  def init(request, config), do: {:ok, :cowboy_req.reply(405, request), config}

  # What cowboy would refuse anyway is refused before a session is begun for it.
  defp upgrade(request, config) do
    with :ok <- well_formed(request),
         :ok <- authorized(request, config.auth_token_hash),
         {:ok, session} <- Sessions.admit(config, request.pid) do
      {:cowboy_websocket, request, {:awaiting_start, session}, @options}
    else
      :malformed -> refuse(request, 400, %{})
      :unauthorized -> refuse(request, 401, %{"www-authenticate" => "Bearer"})
      :draining -> refuse(request, 503, %{})
      :full -> refuse(request, 503, %{"retry-after" => "1"})
    end
  end

  defp refuse(request, status, headers), do: {:ok, :cowboy_req.reply(status, headers, request), nil}

  defp well_formed(%{headers: headers}) do
    case headers do
      %{"sec-websocket-version" => "13", "sec-websocket-key" => _key} -> :ok
      _other -> :malformed
    end
  end

  defp authorized(_request, nil), do: :ok

  defp authorized(request, token_hash) do
    header = :cowboy_req.header("authorization", request, "")

    if :crypto.hash_equals(token_hash, :crypto.hash(:sha256, header)), do: :ok, else: :unauthorized
  end

  @impl true
  def websocket_init({_phase, session} = state) do
    Process.monitor(session)
    {[], state}
  end

  @impl true
  def websocket_handle({:binary, pcm}, {:streaming, session} = state)
      when byte_size(pcm) == Messages.frame_bytes() do
    SessionServer.frame(session, pcm)
    {[], state}
  end

  def websocket_handle({:binary, _other}, {:streaming, _session} = state) do
    close(1003, "a frame has #{Messages.frame_bytes()} bytes", state)
  end

  def websocket_handle({:text, text}, {:awaiting_start, session} = state) do
    if Messages.start?(text) do
      SessionServer.start(session)
      {[], {:streaming, session}}
    else
      close(1002, "expected start", state)
    end
  end

  def websocket_handle({type, _data}, state) when type in [:text, :binary] do
    close(1002, "unexpected #{type}", state)
  end

  # cowboy answers pings itself.
  def websocket_handle(_ping_or_pong, state), do: {[], state}

  @impl true
  def websocket_info({:push, text}, state) do
    # cowboy sends the message when this returns, and blocks while the client does not read. So this note to ourselves
    # is read when the message has been sent.
    send(self(), :sent)
    {[{:text, text}], state}
  end

  def websocket_info(:sent, {_phase, session} = state) do
    SessionServer.sent(session)
    {[], state}
  end

  def websocket_info({:close, code, reason}, state), do: close(code, reason, state)

  def websocket_info({:DOWN, _monitor, :process, session, _reason}, {_phase, session} = state) do
    close(1011, "the session has crashed", state)
  end

  def websocket_info(_message, state), do: {[], state}

  defp close(code, reason, state), do: {[{:close, code, reason}], state}
end
