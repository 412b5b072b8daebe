defmodule Gateway.Http do
  @moduledoc """
  The gateway's HTTP surface, on cowboy. The router answers 404 to what is not here.
  """

  @behaviour :cowboy_handler

  alias Gateway.Metrics

  # Listening sockets of Linux hold this many connects that wait for an acceptor, if net.core.somaxconn allows.
  @backlog 8192

  # Each takes a connection, starts its process and waits until it runs; enough of them that a burst does not queue.
  @acceptors 32

  @doc "The listener, as a child of the gateway's supervisor."
  @spec child_spec(Gateway.Config.t()) :: Supervisor.child_spec()
  def child_spec(config) do
    routes = [
      {"/health", __MODULE__, :health},
      {"/metrics", __MODULE__, :metrics},
      {"/ws/stt", Gateway.Upgrade, config}
    ]

    transport = %{
      num_acceptors: @acceptors,
      max_connections: :infinity,
      socket_opts: [port: config.port, backlog: @backlog, nodelay: true]
    }

    protocol = %{env: %{dispatch: :cowboy_router.compile([{:_, routes}])}}
    :ranch.child_spec(__MODULE__, :ranch_tcp, transport, :cowboy_clear, protocol)
  end

  @doc "The port that the gateway listens at."
  @spec port :: :inet.port_number()
  def port, do: :ranch.get_port(__MODULE__)

  @impl true
  def init(%{method: "GET"} = request, :health) do
    status = if Gateway.Admission.ready?(), do: 200, else: 503
    {:ok, :cowboy_req.reply(status, request), :health}
  end

  def init(%{method: "GET"} = request, :metrics) do
    headers = %{"content-type" => "text/plain; version=0.0.4"}
    {:ok, :cowboy_req.reply(200, headers, Metrics.render(), request), :metrics}
  end

  def init(request, route), do: {:ok, :cowboy_req.reply(404, request), route}
end
