defmodule Gateway.Session do
  @moduledoc """
  A session without I/O: frames, times and answers go in, batches and messages come out.

  It has no clock, no socket and no process, so that every rule of the contract is tested with a simulated clock. The
  process around it is `Gateway.Connection`. Times are monotonic nanoseconds.

  **One request in flight.** A batch leaves only through `flush/3`, whose one head that takes audio matches
  `slot: :idle` and whose result is a session with the slot occupied. A value cannot be flushed twice by two processes,
  for it lives in one. So there is no counter of requests to be checked, and no place from which to start a second.
  """

  alias Gateway.{Failure, Messages}
  alias Gateway.Session.{Audio, Schedule}

  require Messages

  @enforce_keys [:settings, :jitter_ns, :phase, :audio]
  defstruct [
    :settings,
    :jitter_ns,
    # {:awaiting_start, until} | {:streaming, schedule} | {:draining, until}
    :phase,
    :audio,
    # :idle | {:busy, batch description}
    slot: :idle,
    outbox: :queue.new(),
    outbox_messages: 0,
    # What was counted since the last take_tally/1, newest first.
    tally: [],
    seq_counted: 1
  ]

  @type t :: %__MODULE__{}
  @type close_reason :: :protocol | :frame_size | :too_large | :overflow | :going_away
  @type count ::
          {:frames, pos_integer}
          | {:dropped, pos_integer}
          | {:flush, pos_integer, integer}
          | {:deferred, :inflight | :jobs | :outbox}
          | {:inference, integer}
          | {:error, Failure.kind()}
          | :partial

  @doc "A session that was opened at `now` and waits for its start message."
  @spec new(map, non_neg_integer, integer) :: t
  def new(settings, jitter_ns, now) do
    %__MODULE__{
      settings: settings,
      jitter_ns: jitter_ns,
      phase: {:awaiting_start, now + settings.start_timeout_ns},
      audio: Audio.new(settings.overflow_policy, settings.buffer_frames_max)
    }
  end

  @doc "The WebSocket close code of a reason."
  @spec close_code(close_reason) :: pos_integer
  def close_code(:going_away), do: 1001
  def close_code(:protocol), do: 1002
  def close_code(:frame_size), do: 1003
  def close_code(:too_large), do: 1009
  def close_code(:overflow), do: 1013

  @doc "A binary message."
  @spec on_binary(t, integer, binary) :: {:ok, t} | {:close, close_reason}
  def on_binary(%__MODULE__{phase: {:streaming, _}} = session, now, payload)
      when byte_size(payload) == Messages.frame_bytes() do
    case Audio.push(session.audio, now, payload) do
      {:ok, audio} -> {:ok, %{session | audio: audio}}
      :full -> {:close, :overflow}
    end
  end

  def on_binary(session, _now, payload) do
    case refusal(session, :binary, byte_size(payload)) do
      # Only a session that drains takes what is no frame: it takes nothing any more.
      nil -> {:ok, session}
      reason -> {:close, reason}
    end
  end

  @doc "A text message."
  @spec on_text(t, integer, binary) :: {:ok, t} | {:close, close_reason}
  def on_text(%__MODULE__{phase: {:awaiting_start, _}} = session, now, text) do
    if Messages.start?(text) do
      schedule = Schedule.new(now, session.jitter_ns, session.settings.flush_interval_ns)
      {:ok, %{session | phase: {:streaming, schedule}}}
    else
      {:close, :protocol}
    end
  end

  def on_text(%__MODULE__{phase: {:streaming, _}}, _now, _text), do: {:close, :protocol}
  def on_text(%__MODULE__{phase: {:draining, _}} = session, _now, _text), do: {:ok, session}

  @doc """
  Why a message of this type and length will be refused, if it is known before its payload has come.
  """
  @spec refusal(t, :text | :binary, non_neg_integer) :: close_reason | nil
  def refusal(%__MODULE__{phase: {:awaiting_start, _}}, :binary, _length), do: :protocol
  def refusal(%__MODULE__{phase: {:streaming, _}}, :text, _length), do: :protocol

  def refusal(%__MODULE__{phase: {:streaming, _}}, :binary, length) when length != Messages.frame_bytes(),
    do: :frame_size

  def refusal(_session, _type, _length), do: nil

  @doc "When `on_wake/3` is next due."
  @spec wake_at(t) :: integer
  def wake_at(%__MODULE__{phase: phase, slot: slot}) do
    at =
      case phase do
        {:streaming, schedule} -> schedule.next_at
        {_waiting, until} -> until
      end

    case slot do
      {:busy, %{deadline: deadline}} -> min(at, deadline)
      :idle -> at
    end
  end

  @doc """
  Does what is due at `now`. `reserve` takes one of the gateway's jobs, if there is one left.

  `{:flush, pcm, session}` is the order to send one request, whose end goes to `on_answer/3`. `{:timeout, session}` says
  that the request in flight has been given up: its answer, should it come, is of no use.
  """
  @spec on_wake(t, integer, (() -> boolean)) ::
          {:ok, t} | {:flush, iodata, t} | {:timeout, t} | {:close, close_reason}
  def on_wake(%__MODULE__{slot: {:busy, %{deadline: deadline}}} = session, now, _reserve) when deadline <= now do
    # A tick that is due as well comes at once afterwards: wake_at/1 lies in the past.
    {:timeout, on_answer(session, now, {:error, Failure.timeout(session.settings.inference_timeout_ns)})}
  end

  def on_wake(%__MODULE__{phase: {:awaiting_start, until}}, now, _reserve) when until <= now, do: {:close, :protocol}
  def on_wake(%__MODULE__{phase: {:draining, until}}, now, _reserve) when until <= now, do: {:close, :going_away}

  def on_wake(%__MODULE__{phase: {:streaming, schedule}} = session, now, reserve) do
    case Schedule.due(schedule, now) do
      :not_due ->
        {:ok, session}

      {:due, scheduled_at, schedule} ->
        tick(%{session | phase: {:streaming, schedule}}, now, now - scheduled_at, reserve)
    end
  end

  def on_wake(session, _now, _reserve), do: {:ok, session}

  defp tick(session, now, lateness_ns, reserve) do
    session = count_frames(session)

    cond do
      not Audio.waiting?(session.audio) -> {:ok, session}
      session.slot != :idle -> {:ok, count(session, {:deferred, :inflight})}
      outbox_full?(session) -> {:ok, count(session, {:deferred, :outbox})}
      true -> session |> report_dropped(now, lateness_ns) |> flush(now, lateness_ns, reserve)
    end
  end

  # Only drops, and they have just been reported.
  defp flush(%__MODULE__{audio: %{frames: 0}} = session, _now, _lateness_ns, _reserve), do: {:ok, session}

  defp flush(%__MODULE__{slot: :idle} = session, now, lateness_ns, reserve) do
    if reserve.() do
      {%{span: span, pcm: pcm}, audio} = Audio.take(session.audio)

      in_flight = %{
        span: span,
        sent_at: now,
        lateness_ns: lateness_ns,
        deadline: now + session.settings.inference_timeout_ns
      }

      session = count(session, {:flush, Messages.frames(span), lateness_ns})
      {:flush, pcm, %{session | audio: audio, slot: {:busy, in_flight}}}
    else
      {:ok, count(session, {:deferred, :jobs})}
    end
  end

  defp report_dropped(session, now, lateness_ns) do
    case Audio.take_dropped(session.audio) do
      {nil, _audio} -> session
      {span, audio} -> report(%{session | audio: audio}, Failure.overflow(), span, now, lateness_ns, nil)
    end
  end

  @doc "The request in flight has ended. Where there is none this does nothing."
  @spec on_answer(t, integer, {:ok, Messages.inference()} | {:error, Failure.t()}) :: t
  def on_answer(%__MODULE__{slot: :idle} = session, _now, _answer), do: session

  def on_answer(%__MODULE__{slot: {:busy, in_flight}} = session, now, answer) do
    elapsed_ns = now - in_flight.sent_at
    session = count(%{session | slot: :idle}, {:inference, elapsed_ns})

    case answer do
      {:ok, inference} ->
        message = Messages.partial(in_flight.span, inference, session.settings, in_flight.lateness_ns)
        session |> count(:partial) |> put_message(message)

      {:error, failure} ->
        report(session, failure, in_flight.span, now, in_flight.lateness_ns, elapsed_ns)
    end
  end

  @doc "No more frames and no more flushes. What is in flight may end until `until`."
  @spec drain(t, integer) :: t
  def drain(session, until), do: %{session | phase: {:draining, until}}

  @doc "Whether a draining session owes nothing any more."
  @spec drained?(t) :: boolean
  def drained?(%__MODULE__{phase: {:draining, _}, slot: :idle}), do: true
  def drained?(_session), do: false

  @doc "The next message for the client."
  @spec take_message(t) :: {iodata, t} | :empty
  def take_message(%__MODULE__{outbox_messages: 0}), do: :empty

  def take_message(session) do
    {{:value, message}, outbox} = :queue.out(session.outbox)
    {message, %{session | outbox: outbox, outbox_messages: session.outbox_messages - 1}}
  end

  @doc "What was counted since this was last asked."
  @spec take_tally(t) :: {[count], t}
  def take_tally(%__MODULE__{tally: tally} = session), do: {tally, %{session | tally: []}}

  @doc "Enters the frames that came since the last tick into the tally."
  @spec count_frames(t) :: t
  def count_frames(%__MODULE__{audio: %{next_seq: next_seq}, seq_counted: next_seq} = session), do: session

  def count_frames(%__MODULE__{audio: %{next_seq: next_seq}} = session) do
    session = count(session, {:frames, next_seq - session.seq_counted})

    case Audio.take_drop_count(session.audio) do
      {0, _audio} -> %{session | seq_counted: next_seq}
      {drops, audio} -> count(%{session | seq_counted: next_seq, audio: audio}, {:dropped, drops})
    end
  end

  defp outbox_full?(session), do: session.outbox_messages >= session.settings.outbox_messages_max

  defp report(session, failure, span, now, lateness_ns, elapsed_ns) do
    context = %{
      span: span,
      now: now,
      lateness_ns: lateness_ns,
      elapsed_ns: elapsed_ns,
      inflight: if(session.slot == :idle, do: 0, else: 1),
      buffer_frames: session.audio.frames
    }

    session |> count({:error, failure.kind}) |> put_message(Messages.error(failure, context))
  end

  defp put_message(session, message) do
    %{session | outbox: :queue.in(message, session.outbox), outbox_messages: session.outbox_messages + 1}
  end

  defp count(session, count), do: %{session | tally: [count | session.tally]}
end
