defmodule Gateway.Connection do
  @moduledoc """
  The process of one session.

  It is the process that ranch supervises for the connection: after the handshake cowboy hands it over to `takeover/7`, and
  it goes on as a `GenServer`. One process holds socket, rules (`Gateway.Session`), timer and the one request, so no
  frame is passed from process to process, and a crash takes nothing with it but this session.

  It is not a `cowboy_websocket` handler, for that module hides the socket, and the contract needs it: to see whether the
  client takes what is sent (`OUTBOX_MESSAGES`), and to read the socket empty after a close, without which the kernel
  answers unread data with a reset and the client never sees the close code.
  """

  use GenServer, restart: :temporary

  alias Gateway.{Admission, Inference, Metrics, Session, WebSocket}

  # Reads that the port makes before it asks for more credit: once a second's worth of audio. What re-arming costs is spread
  # over them; and when the session falls behind, no more than these wait in its mailbox. The rest collects in the kernel.
  @active_n 50

  # A read takes up to this many bytes, which matters only when the gateway is behind, or reads at a pace (250 ms are half).
  # What a smaller read leaves over of its buffer is given back.
  @read_bytes 16 * 1024

  # What the kernel may hold for a client that does not read; some fifty messages.
  @send_buffer_bytes 16 * 1024

  # How long the closing handshake may take.
  @linger_ms 1000

  # How often a client that does not read is looked at.
  @outbox_retry_ms 20

  @enforce_keys [:socket, :session, :permit, :config]
  defstruct [
    :socket,
    :session,
    :permit,
    :config,
    ws: %WebSocket{},
    # The request in flight, and the connection to the inference server that it is on.
    request: nil,
    wake: nil,
    wake_at: nil,
    # A pong, a close: what goes out beside the session's messages.
    pong: nil,
    close: nil,
    retry: nil,
    # :open, then :closing until the close frame has been handed over, then :shut.
    phase: :open
  ]

  @doc "Called by cowboy in the connection's process, in place of its own loop."
  @spec takeover(pid, :ranch.ref(), :inet.socket(), module, term, binary, map) :: no_return
  def takeover(_parent, _ref, socket, _transport, _opts, buffer, %{config: config, permit: permit}) do
    # A session's own garbage is small; what matters is that payloads do not outlive their batch.
    Process.flag(:fullsweep_after, 8)
    jitter_ns = if config.phase_jitter_ns > 0, do: :rand.uniform(config.phase_jitter_ns) - 1, else: 0
    session = Session.new(config.session, jitter_ns, now())
    state = %__MODULE__{socket: socket, session: session, permit: permit, config: config}
    :gen_server.enter_loop(__MODULE__, [], state, {:continue, {:opened, buffer}})
  end

  @impl true
  def init(_no_start_of_its_own), do: :ignore

  @impl true
  def handle_continue({:opened, buffer}, state) do
    case :inet.setopts(state.socket, buffer: @read_bytes, sndbuf: @send_buffer_bytes) do
      :ok ->
        :ok = listen(state)
        state |> incoming(buffer) |> settle()

      {:error, _gone} ->
        {:stop, :normal, state}
    end
  end

  @impl true
  def handle_info({:tcp, socket, data}, %{socket: socket} = state) do
    state |> incoming(data) |> settle_if_changed(state)
  end

  def handle_info({:tcp_passive, socket}, %{socket: socket} = state) do
    # An error means that the socket is gone; {:tcp_closed, _} says so, too.
    _ = :inet.setopts(socket, active: @active_n)
    {:noreply, state}
  end

  def handle_info(:read, %{phase: :open} = state), do: read_at_a_pace(state)

  def handle_info({:timeout, wake, :wake}, %{wake: wake} = state) do
    %{state | wake: nil, wake_at: nil} |> wake() |> settle()
  end

  def handle_info({:timeout, retry, :retry}, %{retry: retry} = state), do: settle(%{state | retry: nil})
  def handle_info({:timeout, _linger, :linger}, state), do: {:stop, :normal, state}

  def handle_info({:drain, until}, %{phase: :open} = state) do
    settle(%{state | session: Session.drain(state.session, until)})
  end

  def handle_info({:tcp_closed, socket}, %{socket: socket} = state) do
    {:stop, :normal, state}
  end

  def handle_info({:tcp_error, socket, _reason}, %{socket: socket} = state), do: {:stop, :normal, state}

  # Whatever else comes is from gun, or of no concern: the exit of the process that answered the upgrade request.
  def handle_info(message, %{request: request} = state) when request != nil do
    case Inference.handle(message, request) do
      {:done, answer} ->
        Admission.release_job(state.permit)
        session = Session.on_answer(state.session, now(), answer)
        settle(%{state | request: nil, session: session})

      {:more, request} ->
        {:noreply, %{state | request: request}}

      :unknown ->
        {:noreply, state}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  @impl true
  def handle_call(_request, _from, state), do: {:reply, :unknown, state}

  @impl true
  def handle_cast(_message, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state) do
    state = give_up_request(state)
    state.session |> Session.count_frames() |> Session.take_tally() |> elem(0) |> Metrics.record()

    # What the client has not taken by now goes with the socket; nothing waits for it.
    _ = if unsent?(state.socket), do: :inet.setopts(state.socket, linger: {true, 0})
    :gen_tcp.close(state.socket)
  end

  @doc """
  A crash is reported with the state, and fifty frames of audio tell nobody anything. (The callback of OTP 25, which
  Elixir 1.14 does not declare yet.)
  """
  @spec format_status(map) :: map
  def format_status(status) do
    Map.replace_lazy(status, :state, fn %{session: session} = state ->
      %{phase: state.phase, session: session.phase, frames: session.audio.frames, slot: session.slot}
    end)
  end

  ## Reading

  # An error means that the socket is gone; {:tcp_closed, _} or the first read will say so, too.
  defp listen(%{config: %{read_pace_ms: 0}} = state) do
    _ = :inet.setopts(state.socket, active: @active_n)
    :ok
  end

  defp listen(%{config: %{read_pace_ms: pace_ms}}) do
    _ = Process.send_after(self(), :read, pace_ms)
    :ok
  end

  # One read takes all that has come since the last. The socket stays passive, so nothing polls it in between.
  defp read_at_a_pace(state) do
    case read_waiting(state) do
      {:ok, read} ->
        Process.send_after(self(), :read, state.config.read_pace_ms)
        settle_if_changed(read, state)

      :closed ->
        {:stop, :normal, state}
    end
  end

  defp read_waiting(%{phase: :open} = state) do
    case :gen_tcp.recv(state.socket, 0, 0) do
      {:ok, data} when byte_size(data) < @read_bytes -> {:ok, incoming(state, data)}
      {:ok, data} -> state |> incoming(data) |> read_waiting()
      {:error, :timeout} -> {:ok, state}
      {:error, _closed} -> :closed
    end
  end

  defp read_waiting(state), do: {:ok, state}

  defp incoming(%{phase: :open} = state, data), do: events(state, data, now())
  # After a close what the client still sends is read and dropped.
  defp incoming(state, _data), do: state

  defp events(state, data, now) do
    case WebSocket.next(data, state.ws) do
      {{:binary, payload}, rest, ws} ->
        accept(state, Session.on_binary(state.session, now, payload), rest, ws, now)

      {:more, nil, ws} ->
        put_ws(state, ws)

      {:more, {type, length}, ws} ->
        refuse(put_ws(state, ws), Session.refusal(state.session, type, length))

      {{:text, text}, rest, ws} ->
        accept(state, Session.on_text(state.session, now, text), rest, ws, now)

      # Only the last of several pings must be answered (RFC 6455, section 5.5.3), so a flood of them fills nothing.
      {{:ping, payload}, rest, ws} ->
        events(flush_out(%{state | ws: ws, pong: payload}), rest, now)

      {:pong, rest, ws} ->
        events(%{state | ws: ws}, rest, now)

      {{:close, code}, _rest, _ws} ->
        close(state, code)

      {:violation, reason} ->
        refuse(state, reason)
    end
  end

  defp put_ws(%{ws: ws} = state, ws), do: state
  defp put_ws(state, ws), do: %{state | ws: ws}

  defp accept(state, {:ok, session}, rest, ws, now), do: events(%{state | session: session, ws: ws}, rest, now)
  defp accept(state, {:close, reason}, _rest, _ws, _now), do: refuse(state, reason)

  defp refuse(state, nil), do: state
  defp refuse(state, reason), do: close(state, Session.close_code(reason))

  ## Waking

  defp wake(%{phase: :open} = state) do
    case read_before_flush(state) do
      {:ok, state} -> on_wake(state)
      :closed -> close(state, nil)
    end
  end

  defp wake(state), do: state

  # A flush must see what has arrived, also between two paced reads.
  defp read_before_flush(%{config: %{read_pace_ms: 0}} = state), do: {:ok, state}
  defp read_before_flush(state), do: read_waiting(state)

  defp on_wake(%{phase: :open} = state) do
    reserve = fn -> Admission.take_job(state.permit) end

    case Session.on_wake(state.session, now(), reserve) do
      {:ok, session} -> %{state | session: session}
      {:timeout, session} -> give_up_request(%{state | session: session})
      {:flush, pcm, session} -> send_request(%{state | session: session}, pcm)
      {:close, reason} -> refuse(state, reason)
    end
  end

  defp on_wake(state), do: state

  defp send_request(state, pcm) do
    case Inference.post(state.permit.number, pcm) do
      {:ok, request} ->
        %{state | request: request}

      {:error, failure} ->
        Admission.release_job(state.permit)
        %{state | session: Session.on_answer(state.session, now(), {:error, failure})}
    end
  end

  defp give_up_request(%{request: nil} = state), do: state

  defp give_up_request(state) do
    Inference.cancel(state.request)
    Admission.release_job(state.permit)
    %{state | request: nil}
  end

  ## Writing and closing

  # The end of every callback that may have changed something: sends what can be sent, sets the timer.
  defp settle(state) do
    {tally, session} = Session.take_tally(state.session)
    Metrics.record(tally)
    state = %{state | session: session}
    state = if Session.drained?(session), do: refuse(state, :going_away), else: state
    {:noreply, state |> flush_out() |> arm_wake()}
  end

  # The end of a callback that read: mostly it has only put frames into the buffer, and nothing is to be done.
  defp settle_if_changed(%{phase: :open, session: %{phase: phase}} = state, %{session: %{phase: phase}}) do
    {:noreply, state}
  end

  defp settle_if_changed(state, _before), do: settle(state)

  defp close(%{phase: :open} = state, code) do
    :erlang.start_timer(@linger_ms, self(), :linger)
    # From now on everything is read as it comes, to be dropped.
    _ = :inet.setopts(state.socket, active: @active_n)
    give_up_request(%{state | phase: :closing, close: {:close, code}})
  end

  defp close(state, _code), do: state

  # Hands the next messages to the socket, as long as it has nothing unsent: then a send writes what the kernel takes and
  # queues the rest of this one message in the port, and never blocks.
  defp flush_out(%{retry: nil} = state) do
    cond do
      nothing_to_send?(state) -> state
      unsent?(state.socket) -> %{state | retry: :erlang.start_timer(@outbox_retry_ms, self(), :retry)}
      true -> send_next(state)
    end
  end

  defp flush_out(state), do: state

  defp nothing_to_send?(state) do
    state.pong == nil and state.session.outbox_messages == 0 and (state.close == nil or state.phase == :shut)
  end

  defp send_next(%{pong: payload} = state) when payload != nil do
    state |> transmit({:pong, payload}) |> Map.put(:pong, nil) |> flush_out()
  end

  defp send_next(state) do
    case Session.take_message(state.session) do
      {message, session} -> %{state | session: session} |> transmit({:text, message}) |> flush_out()
      :empty -> shut(transmit(state, state.close))
    end
  end

  # No more writing; reading goes on until the client has closed, too, or the linger is over.
  defp shut(state) do
    _ = :gen_tcp.shutdown(state.socket, :write)
    %{state | phase: :shut}
  end

  # When the client is gone, {:tcp_closed, _} tells.
  defp transmit(state, frame) do
    _ = :gen_tcp.send(state.socket, WebSocket.frame(frame))
    state
  end

  defp unsent?(socket) do
    case :inet.getstat(socket, [:send_pend]) do
      {:ok, send_pend: bytes} -> bytes > 0
      {:error, _gone} -> false
    end
  end

  defp arm_wake(%{phase: :open} = state) do
    case Session.wake_at(state.session) do
      at when at == state.wake_at ->
        state

      at ->
        _ = if state.wake, do: :erlang.cancel_timer(state.wake, async: true, info: false)
        # Rounded up: a timer a little early would find nothing due.
        at_ms = -Integer.floor_div(-at, 1_000_000)
        %{state | wake: :erlang.start_timer(at_ms, self(), :wake, abs: true), wake_at: at}
    end
  end

  defp arm_wake(state), do: state

  defp now, do: System.monotonic_time(:nanosecond)
end
