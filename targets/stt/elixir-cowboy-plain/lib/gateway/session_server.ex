defmodule Gateway.SessionServer do
  @moduledoc """
  The process of one session: its rules (`Gateway.Session`), its timers, its request.

  It is not the process of the WebSocket (`Gateway.Socket`), because that one blocks while a client does not read. This
  one goes on: it knows what the client has not taken yet, and defers its ticks.
  """

  use GenServer, restart: :temporary

  alias Gateway.{Failure, Inference, Jobs, Messages, Metrics, Session}

  @enforce_keys [:config, :connection]
  defstruct [
    :config,
    :connection,
    # :awaiting_start, :streaming, :draining or :closing
    phase: :awaiting_start,
    session: nil,
    request: nil,
    timeout: nil,
    # Messages that the connection has not handed to its socket yet.
    unsent: 0
  ]

  @spec start_link({Gateway.Config.t(), pid}) :: GenServer.on_start()
  def start_link({config, connection}) do
    GenServer.start_link(__MODULE__, %__MODULE__{config: config, connection: connection})
  end

  @doc "The client's start message has come."
  @spec start(pid) :: :ok
  def start(server), do: GenServer.cast(server, :start)

  @doc "A frame has come."
  @spec frame(pid, binary) :: :ok
  def frame(server, pcm), do: GenServer.cast(server, {:frame, now(), pcm})

  @doc "A message has been handed to the socket."
  @spec sent(pid) :: :ok
  def sent(server), do: GenServer.cast(server, :sent)

  @doc "Ends the session once what is in flight has been answered."
  @spec drain(pid) :: :ok
  def drain(server), do: GenServer.cast(server, :drain)

  @doc "Ends the session."
  @spec close(pid) :: :ok
  def close(server), do: GenServer.cast(server, :close)

  @impl true
  def init(state) do
    Process.monitor(state.connection)
    Process.send_after(self(), :start_timeout, state.config.start_timeout_ms)
    {:ok, state}
  end

  @impl true
  def handle_cast({:frame, now, pcm}, %{phase: :streaming} = state) do
    Metrics.add(:frames_total)

    case Session.push(state.session, now, pcm) do
      {:kept, session} ->
        {:noreply, %{state | session: session}}

      {:dropped, session} ->
        Metrics.add(:frames_dropped_total)
        {:noreply, %{state | session: session}}

      :full ->
        {:noreply, close(state, 1013, "input buffer full")}
    end
  end

  def handle_cast(:start, %{phase: :awaiting_start, config: config} = state) do
    jitter_us = :rand.uniform(config.flush_phase_jitter_ms * 1000 + 1) - 1
    session = Session.new(config, now(), jitter_us)
    {:noreply, arm_tick(%{state | phase: :streaming, session: session})}
  end

  def handle_cast(:sent, state), do: {:noreply, %{state | unsent: state.unsent - 1}}

  def handle_cast(:drain, %{phase: phase} = state) when phase in [:awaiting_start, :streaming] do
    {:noreply, close_if_drained(%{state | phase: :draining})}
  end

  def handle_cast(:close, state), do: {:noreply, close(state, 1001, "going away")}

  # A frame while draining or closing; a second call to drain.
  def handle_cast(_message, state), do: {:noreply, state}

  @impl true
  def handle_info(:tick, %{phase: :streaming} = state) do
    room = state.config.outbox_messages - state.unsent
    {actions, session} = Session.tick(state.session, now(), room, &Jobs.acquire/0)
    {:noreply, actions |> Enum.reduce(%{state | session: session}, &act/2) |> arm_tick()}
  end

  def handle_info(:start_timeout, %{phase: :awaiting_start} = state) do
    {:noreply, close(state, 1002, "no start")}
  end

  def handle_info({:timeout, stream}, %{request: %{stream: stream}} = state) do
    Inference.cancel(state.request)
    {:noreply, answered(state, {:error, Failure.timeout(state.config.inference_timeout_ms)})}
  end

  def handle_info(
        {:DOWN, _monitor, :process, connection, _reason},
        %{connection: connection} = state
      ) do
    {:stop, :normal, state}
  end

  # What is left is gun's, or nothing of ours: a tick of a session that drains, the timeout of an answered request.
  def handle_info(message, state) do
    case Inference.handle(message, state.request) do
      {:done, outcome} -> {:noreply, answered(state, outcome)}
      {:more, request} -> {:noreply, %{state | request: request}}
      :unknown -> {:noreply, state}
    end
  end

  # Also after a crash: the request's place must not be lost.
  @impl true
  def terminate(_reason, state), do: give_up_request(state)

  defp act({:deferred, reason}, state) do
    Metrics.add({:deferred, reason})
    state
  end

  defp act({:overflow, span, lateness_us}, state) do
    send_error(state, Failure.overflow(), span, lateness_us, nil)
  end

  defp act({:flush, batch, pcm}, state) do
    Metrics.observe(:buffer_frames, div(byte_size(pcm), 640))
    Metrics.observe(:flush_lateness, batch.lateness_us)

    case Inference.post(state.config, pcm) do
      {:ok, request} ->
        timeout =
          Process.send_after(
            self(),
            {:timeout, request.stream},
            state.config.inference_timeout_ms
          )

        %{state | request: request, timeout: timeout}

      {:error, failure} ->
        answered(state, {:error, failure})
    end
  end

  defp answered(state, outcome) do
    Jobs.release()
    if state.timeout, do: Process.cancel_timer(state.timeout)
    {batch, session} = Session.answered(state.session)
    elapsed_us = now() - batch.sent_at
    Metrics.observe(:inference, elapsed_us)
    state = %{state | session: session, request: nil, timeout: nil}

    state = send_outcome(state, outcome, batch, elapsed_us)
    close_if_drained(state)
  end

  defp send_outcome(state, {:ok, answer}, batch, _elapsed_us) do
    Metrics.add(:partials_total)
    cpu_passes = state.config.cpu_passes
    push(state, Messages.partial(batch.span, answer, cpu_passes, batch.lateness_us))
  end

  defp send_outcome(state, {:error, failure}, batch, elapsed_us) do
    send_error(state, failure, batch.span, batch.lateness_us, elapsed_us)
  end

  defp send_error(state, failure, span, lateness_us, elapsed_us) do
    Metrics.add({:error, failure.kind})

    context = %{
      now: now(),
      lateness_us: lateness_us,
      elapsed_us: elapsed_us,
      inflight_batches: Jobs.count(),
      buffer_frames: Session.buffered(state.session)
    }

    push(state, Messages.error(failure, span, context))
  end

  defp push(state, text) do
    send(state.connection, {:push, text})
    %{state | unsent: state.unsent + 1}
  end

  defp close_if_drained(%{phase: :draining, request: nil} = state),
    do: close(state, 1001, "going away")

  defp close_if_drained(state), do: state

  # The session ends when its connection does.
  defp close(%{phase: :closing} = state, _code, _reason), do: state

  defp close(state, code, reason) do
    send(state.connection, {:close, code, reason})
    %{give_up_request(state) | phase: :closing}
  end

  defp give_up_request(%{request: nil} = state), do: state

  defp give_up_request(state) do
    Inference.cancel(state.request)
    Jobs.release()
    %{state | request: nil}
  end

  # Rounded up: a timer that comes too early would find nothing due.
  defp arm_tick(%{session: session} = state) do
    at_ms = div(session.next_tick_at + 999, 1000)
    Process.send_after(self(), :tick, at_ms, abs: true)
    state
  end

  defp now, do: System.monotonic_time(:microsecond)
end
