defmodule Gateway.Inference do
  @moduledoc """
  Requests to the inference server: HTTP/2 with prior knowledge, on gun connections.

  This process opens the connections and keeps a table of those that are up. A session posts for itself, and gets the
  parts of the answer as messages, which `handle/2` puts together.
  """

  use GenServer

  alias Gateway.{Failure, Messages}

  @answer_bytes_max 64 * 1024
  @reopen_ms 100

  # The listener starts when this process has: so the first batch finds a connection, unless the server is not there.
  @first_up_ms 1_000

  defmodule Request do
    @moduledoc "A request in flight: a stream of a connection."
    @enforce_keys [:connection, :stream, :monitor]
    defstruct [:connection, :stream, :monitor, status: nil, body: ""]
    @type t :: %__MODULE__{}
  end

  @type outcome :: {:ok, Messages.answer()} | {:error, Failure.t()}

  @spec start_link(Gateway.Config.t()) :: GenServer.on_start()
  def start_link(config), do: GenServer.start_link(__MODULE__, config, name: __MODULE__)

  @doc "Sends a batch; the answer's messages come to the caller."
  @spec post(Gateway.Config.t(), binary) :: {:ok, Request.t()} | {:error, Failure.t()}
  def post(%{inference: inference} = config, pcm) do
    # A session stays on its connection, so that each carries about as many.
    case :ets.lookup(__MODULE__, :erlang.phash2(self(), inference.connections)) do
      [{_index, connection}] ->
        headers = [
          {"content-type", "application/octet-stream"},
          {"x-cpu-passes", Integer.to_string(config.cpu_passes)}
        ]

        monitor = Process.monitor(connection)
        stream = :gun.post(connection, inference.path, headers, pcm)
        {:ok, %Request{connection: connection, stream: stream, monitor: monitor}}

      [] ->
        {:error, Failure.connection_reset(:not_connected)}
    end
  end

  @doc "What a message means to a request."
  @spec handle(term, Request.t() | nil) :: {:done, outcome} | {:more, Request.t()} | :unknown
  def handle({:gun_response, _pid, stream, fin, status, _headers}, %{stream: stream} = request) do
    continue(%{request | status: status}, fin)
  end

  def handle({:gun_data, _pid, stream, fin, data}, %{stream: stream} = request) do
    body = request.body <> data

    if byte_size(body) > @answer_bytes_max do
      cancel(request)
      {:done, {:error, Failure.parse_error()}}
    else
      continue(%{request | body: body}, fin)
    end
  end

  def handle({:gun_trailers, _pid, stream, _trailers}, %{stream: stream} = request) do
    continue(request, :fin)
  end

  def handle({:gun_error, _pid, stream, reason}, %{stream: stream} = request) do
    finish(request, {:error, Failure.connection_reset(reason)})
  end

  def handle({:DOWN, monitor, :process, _pid, reason}, %{monitor: monitor}) do
    {:done, {:error, Failure.connection_reset(reason)}}
  end

  def handle(_message, _request), do: :unknown

  defp continue(request, :nofin), do: {:more, request}

  defp continue(%{status: 200} = request, :fin) do
    case Messages.parse_answer(request.body) do
      {:ok, answer} -> finish(request, {:ok, answer})
      :error -> finish(request, {:error, Failure.parse_error()})
    end
  end

  defp continue(request, :fin), do: finish(request, {:error, Failure.from_status(request.status)})

  defp finish(request, outcome) do
    Process.demonitor(request.monitor, [:flush])
    {:done, outcome}
  end

  @doc "Gives a request up. What still comes of it is no session's message."
  @spec cancel(Request.t()) :: :ok
  def cancel(request) do
    Process.demonitor(request.monitor, [:flush])
    :gun.cancel(request.connection, request.stream)
  end

  ## The owner of the connections

  @impl true
  def init(config) do
    :ets.new(__MODULE__, [:named_table, :protected, read_concurrency: true])
    state = %{server: config.inference, indexes: %{}}
    state = Enum.reduce(0..(config.inference.connections - 1), state, &open/2)
    until_ms = System.monotonic_time(:millisecond) + @first_up_ms
    for {connection, index} <- state.indexes, up?(connection, until_ms), do: enter(index, connection)
    {:ok, state}
  end

  @impl true
  def handle_info({:open, index}, state), do: {:noreply, open(index, state)}

  def handle_info({:gun_up, connection, :http2}, state) do
    enter(state.indexes[connection], connection)
    {:noreply, state}
  end

  def handle_info({:DOWN, _monitor, :process, connection, _reason}, state) do
    {index, indexes} = Map.pop!(state.indexes, connection)
    :ets.delete(__MODULE__, index)
    Process.send_after(self(), {:open, index}, @reopen_ms)
    {:noreply, %{state | indexes: indexes}}
  end

  # gun_down comes before the connection's process ends.
  def handle_info(_message, state), do: {:noreply, state}

  defp open(index, %{server: server} = state) do
    # Without gun's own retries: then requests fail at once while the server is away, instead of waiting for it.
    options = %{transport: :tcp, protocols: [:http2], retry: 0, tcp_opts: [nodelay: true]}
    {:ok, connection} = :gun.open(server.host, server.port, options)
    Process.monitor(connection)
    put_in(state.indexes[connection], index)
  end

  defp up?(connection, until_ms) do
    wait_ms = max(until_ms - System.monotonic_time(:millisecond), 0)
    match?({:ok, _protocol}, :gun.await_up(connection, wait_ms))
  end

  defp enter(index, connection), do: :ets.insert(__MODULE__, {index, connection})
end
