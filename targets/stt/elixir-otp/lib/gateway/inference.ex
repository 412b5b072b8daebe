defmodule Gateway.Inference do
  @moduledoc """
  Requests to the inference server: HTTP/2 with prior knowledge, over a few gun connections.

  This process owns the connections and keeps a table of those that are up. A session posts by itself, straight to a
  connection's process, and gets the parts of the answer as messages; `handle/2` puts them together.
  """

  use GenServer

  alias Gateway.{Failure, Messages}

  # An answer is some 130 bytes.
  @answer_bytes_max 64 * 1024

  # How long to wait before a lost connection is tried again.
  @reconnect_ms 50

  # The listener starts when this process has: so the first batch finds a connection, unless the server is not there.
  @first_up_ms 1_000

  @retries 1_000_000_000

  defmodule Request do
    @moduledoc "A request in flight: one stream of one connection."
    @enforce_keys [:connection, :stream, :monitor]
    defstruct [:connection, :stream, :monitor, status: nil, body: [], body_bytes: 0]
    @type t :: %__MODULE__{}
  end

  @spec start_link(Gateway.Config.t()) :: GenServer.on_start()
  def start_link(config), do: GenServer.start_link(__MODULE__, config.inference, name: __MODULE__)

  @doc "Sends a batch; the caller gets the answer's messages. A session's number chooses its connection."
  @spec post(non_neg_integer, iodata) :: {:ok, Request.t()} | {:error, Failure.t()}
  def post(number, pcm) do
    %{connections: count, path: path, headers: headers} = :persistent_term.get(__MODULE__)

    case connection(rem(number, count), count) do
      nil ->
        {:error, Failure.connection_reset(:not_connected)}

      connection ->
        monitor = Process.monitor(connection)
        stream = :gun.post(connection, path, headers, pcm)
        {:ok, %Request{connection: connection, stream: stream, monitor: monitor}}
    end
  end

  # The session's own connection, or any other that is up.
  defp connection(index, count) do
    up(index) || Enum.find_value(0..(count - 1), &up/1)
  end

  defp up(index) do
    case :ets.lookup(__MODULE__, index) do
      [{_index, connection}] -> connection
      [] -> nil
    end
  end

  @doc "What a message means to a request."
  @spec handle(term, Request.t()) ::
          {:done, {:ok, Messages.inference()} | {:error, Failure.t()}} | {:more, Request.t()} | :unknown
  def handle({:gun_response, _pid, stream, is_fin, status, _headers}, %Request{stream: stream} = request) do
    continue(%{request | status: status}, is_fin)
  end

  def handle({:gun_data, _pid, stream, is_fin, data}, %Request{stream: stream} = request) do
    bytes = request.body_bytes + byte_size(data)

    if bytes > @answer_bytes_max do
      cancel(request)
      {:done, {:error, Failure.parse_error()}}
    else
      continue(%{request | body: [request.body, data], body_bytes: bytes}, is_fin)
    end
  end

  def handle({:gun_trailers, _pid, stream, _headers}, %Request{stream: stream} = request), do: continue(request, :fin)

  def handle({:gun_error, _pid, stream, reason}, %Request{stream: stream} = request), do: failed(request, reason)

  def handle({:gun_error, connection, reason}, %Request{connection: connection} = request) do
    # The connection as a whole; it will not say so of each stream.
    cancel(request)
    failed(request, reason)
  end

  def handle({:DOWN, monitor, :process, _pid, reason}, %Request{monitor: monitor} = request),
    do: failed(request, reason)

  def handle(_other, _request), do: :unknown

  defp continue(request, :nofin), do: {:more, request}

  defp continue(%Request{status: 200} = request, :fin) do
    forget(request)

    case Messages.parse_inference(IO.iodata_to_binary(request.body)) do
      {:ok, inference} -> {:done, {:ok, inference}}
      :error -> {:done, {:error, Failure.parse_error()}}
    end
  end

  defp continue(request, :fin) do
    forget(request)
    {:done, {:error, Failure.from_status(request.status)}}
  end

  defp failed(request, reason) do
    forget(request)
    {:done, {:error, Failure.connection_reset(reason)}}
  end

  @doc "Gives a request up. Messages that are on their way find no request and are dropped."
  @spec cancel(Request.t()) :: :ok
  def cancel(request) do
    forget(request)
    :gun.cancel(request.connection, request.stream)
  end

  defp forget(request), do: Process.demonitor(request.monitor, [:flush])

  ## The owner of the connections

  @impl true
  def init(inference) do
    _ = :ets.new(__MODULE__, [:named_table, :protected, read_concurrency: true])

    :persistent_term.put(__MODULE__, %{
      connections: inference.connections,
      path: inference.path,
      headers: [
        {"content-type", "application/octet-stream"},
        {"x-cpu-passes", Integer.to_string(inference.cpu_passes)}
      ]
    })

    state = %{host: inference.host, port: inference.port, connections: %{}}
    state = Enum.reduce(0..(inference.connections - 1), state, &open/2)
    {:ok, await_up(state, System.monotonic_time(:millisecond) + @first_up_ms)}
  end

  # Until all are up, or time is over.
  defp await_up(state, until_ms) do
    receive do
      {:gun_up, _connection, _protocol} = message ->
        {:noreply, state} = handle_info(message, state)
        if :ets.info(__MODULE__, :size) == map_size(state.connections), do: state, else: await_up(state, until_ms)
    after
      max(until_ms - System.monotonic_time(:millisecond), 0) -> state
    end
  end

  defp open(index, state) do
    {:ok, connection} =
      :gun.open(state.host, state.port, %{
        protocols: [:http2],
        retry: @retries,
        retry_timeout: @reconnect_ms,
        http2_opts: %{keepalive: :infinity},
        transport_opts: [nodelay: true, buffer: 64 * 1024]
      })

    Process.monitor(connection)
    %{state | connections: Map.put(state.connections, connection, index)}
  end

  @impl true
  def handle_info({:gun_up, connection, _protocol}, state) do
    prefer(connection)
    :ets.insert(__MODULE__, {state.connections[connection], connection})
    {:noreply, state}
  end

  def handle_info({:gun_down, connection, _protocol, _reason, _killed, _unprocessed}, state) do
    :ets.delete(__MODULE__, state.connections[connection])
    {:noreply, state}
  end

  def handle_info({:DOWN, _monitor, :process, connection, _reason}, state) do
    {index, connections} = Map.pop!(state.connections, connection)
    :ets.delete(__MODULE__, index)
    {:noreply, open(index, %{state | connections: connections})}
  end

  def handle_info(_message, state), do: {:noreply, state}

  # A connection is one process among thousands. With normal priority it gets one turn in a round of all of them, requests
  # collect in its mailbox meanwhile, and each of its writes looks through all of these for the port's reply: at twice
  # the load line every batch timed out, at ten requests a second. With high priority it has its turn at once and its
  # mailbox stays empty: every batch was answered. gun has no option for that, but as a process that knows system
  # messages it lets a function see its state.
  defp prefer(connection) do
    :sys.replace_state(connection, fn state ->
      Process.flag(:priority, :high)
      state
    end)
  catch
    # It has just gone again.
    :exit, _reason -> :ok
  end
end
