defmodule Gateway.Upgrade do
  @moduledoc """
  `GET /ws/stt`: decides, while it is still HTTP, whether there is to be a session, and hands the connection over.

  A cowboy sub-protocol, as `cowboy_websocket` is one; `Gateway.Connection` tells why that is not used.
  """

  @behaviour :cowboy_handler
  @behaviour :cowboy_sub_protocol

  alias Gateway.{Admission, Metrics}

  @impl :cowboy_handler
  def init(%{method: "GET"} = request, config), do: {__MODULE__, request, config}
  def init(request, config), do: {:ok, :cowboy_req.reply(404, request), config}

  @impl :cowboy_sub_protocol
  def upgrade(request, env, handler, config), do: upgrade(request, env, handler, config, %{})

  @impl :cowboy_sub_protocol
  def upgrade(request, env, _handler, config, _options) do
    with :ok <- asked(request),
         {:ok, key} <- key(request),
         :ok <- authorized(request, config.auth_token_hash),
         {:ok, permit} <- admitted(request) do
      switch(request, key, %{config: config, permit: permit})
      {:ok, request, env}
    else
      {status, headers} -> {:ok, :cowboy_req.reply(status, headers, request), env}
    end
  end

  defp asked(request) do
    cond do
      not :cowboy_websocket.is_upgrade_request(request) ->
        {426, %{"connection" => "upgrade", "upgrade" => "websocket"}}

      :cowboy_req.header("sec-websocket-version", request) != "13" ->
        {426, %{"sec-websocket-version" => "13"}}

      true ->
        :ok
    end
  end

  defp key(request) do
    with key when is_binary(key) <- :cowboy_req.header("sec-websocket-key", request),
         {:ok, <<_::16-bytes>>} <- Base.decode64(key) do
      {:ok, key}
    else
      _ -> {400, %{}}
    end
  end

  defp authorized(_request, nil), do: :ok

  defp authorized(request, hash) do
    header = :cowboy_req.header("authorization", request, "")

    if :crypto.hash_equals(hash, :crypto.hash(:sha256, header)),
      do: :ok,
      else: {401, %{"www-authenticate" => "Bearer"}}
  end

  defp admitted(%{pid: connection}) do
    with refused when refused in [:full, :draining] <- Admission.admit(connection) do
      Metrics.session_rejected()
      {503, %{"retry-after" => "1"}}
    end
  end

  defp switch(%{pid: connection, streamid: stream_id}, key, session) do
    headers = %{
      "connection" => "Upgrade",
      "upgrade" => "websocket",
      "sec-websocket-accept" => :cow_ws.encode_key(key)
    }

    send(connection, {{connection, stream_id}, {:switch_protocol, headers, Gateway.Connection, session}})
  end
end
