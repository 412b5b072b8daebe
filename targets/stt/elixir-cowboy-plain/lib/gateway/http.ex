defmodule Gateway.Http do
  @moduledoc """
  The HTTP surface, on cowboy. The router answers 404 to what is not here.
  """

  @behaviour :cowboy_handler

  alias Gateway.{Metrics, Sessions}

  # What the kernel holds for a client that does not read. Its own choice can be megabytes: minutes of messages.
  @send_buffer_bytes 32 * 1024

  @doc "The listener, as a child of the gateway's supervisor."
  @spec child_spec(Gateway.Config.t()) :: Supervisor.child_spec()
  def child_spec(config) do
    routes = [
      {"/health", __MODULE__, :health},
      {"/metrics", __MODULE__, :metrics},
      {"/ws/stt", Gateway.Socket, config}
    ]

    dispatch = :cowboy_router.compile([{:_, routes}])
    socket_opts = [port: config.port, sndbuf: @send_buffer_bytes]
    transport = %{socket_opts: socket_opts, connection_type: :supervisor}
    protocol = %{env: %{dispatch: dispatch}, connection_type: :supervisor}
    :ranch.child_spec(__MODULE__, :ranch_tcp, transport, :cowboy_clear, protocol)
  end

  @impl true
  def init(%{method: "GET"} = request, :health) do
    status = if Sessions.draining?(), do: 503, else: 200
    {:ok, :cowboy_req.reply(status, request), :health}
  end

  def init(%{method: "GET"} = request, :metrics) do
    headers = %{"content-type" => "text/plain; version=0.0.4"}
    {:ok, :cowboy_req.reply(200, headers, Metrics.render(), request), :metrics}
  end

  def init(request, route), do: {:ok, :cowboy_req.reply(405, request), route}
end
