defmodule Gateway.Session do
  @moduledoc """
  The rules of a session as a value: schedule, one request in flight, ledger. No clock, no socket, no process.

  Times are monotonic microseconds. `Gateway.SessionServer` is the process around it.

  **One request in flight.** Audio leaves only through `flush/5`, which matches `slot: :idle` and occupies the slot.
  """

  alias Gateway.Session.Buffer

  @enforce_keys [:interval_us, :next_tick_at, :buffer]
  defstruct [:interval_us, :next_tick_at, :buffer, slot: :idle]

  @type t :: %__MODULE__{}
  @typedoc "What a request is about."
  @type batch :: %{span: Buffer.span(), sent_at: integer, lateness_us: non_neg_integer}
  @typedoc "What the caller of a tick must do, in this order."
  @type action ::
          {:overflow, Buffer.span(), lateness_us :: non_neg_integer}
          | {:deferred, :inflight | :jobs | :outbox}
          | {:flush, batch, pcm :: binary}

  @doc "A session that was started at `now`, with its own jitter."
  @spec new(Gateway.Config.t(), integer, non_neg_integer) :: t
  def new(config, now, jitter_us) do
    interval_us = config.flush_interval_ms * 1000

    %__MODULE__{
      interval_us: interval_us,
      next_tick_at: now + jitter_us + interval_us,
      buffer: Buffer.new(config.overflow_policy, config.max_buffer_frames)
    }
  end

  @doc "Takes a frame that arrived at `now`."
  @spec push(t, integer, binary) :: {:kept | :dropped, t} | :full
  def push(session, now, pcm) do
    with {fate, buffer} <- Buffer.push(session.buffer, now, pcm) do
      {fate, %{session | buffer: buffer}}
    end
  end

  @doc """
  Runs the tick that is due, or the last one of several.

  `outbox_room` is how many messages the client may still be sent; `reserve` takes one of the gateway's jobs.
  """
  @spec tick(t, integer, integer, (-> boolean)) :: {[action], t}
  def tick(%{next_tick_at: scheduled_at} = session, now, outbox_room, reserve)
      when now >= scheduled_at do
    missed = div(now - scheduled_at, session.interval_us)
    session = %{session | next_tick_at: scheduled_at + (missed + 1) * session.interval_us}
    lateness_us = now - scheduled_at

    cond do
      Buffer.empty?(session.buffer) -> {[], session}
      session.slot != :idle -> {[{:deferred, :inflight}], session}
      outbox_room <= 0 -> {[{:deferred, :outbox}], session}
      true -> report_and_flush(session, now, lateness_us, outbox_room, reserve)
    end
  end

  # A timer that came too early.
  def tick(session, _now, _outbox_room, _reserve), do: {[], session}

  defp report_and_flush(session, now, lateness_us, outbox_room, reserve) do
    case Buffer.take_dropped(session.buffer) do
      {nil, _buffer} ->
        flush(session, now, lateness_us, outbox_room, reserve)

      {span, buffer} ->
        session = %{session | buffer: buffer}
        {actions, session} = flush(session, now, lateness_us, outbox_room - 1, reserve)
        {[{:overflow, span, lateness_us} | actions], session}
    end
  end

  # There were only drops.
  defp flush(%{buffer: %{count: 0}} = session, _now, _lateness_us, _room, _reserve),
    do: {[], session}

  defp flush(session, _now, _lateness_us, room, _reserve) when room <= 0,
    do: {[{:deferred, :outbox}], session}

  defp flush(%{slot: :idle} = session, now, lateness_us, _room, reserve) do
    if reserve.() do
      {span, pcm, buffer} = Buffer.take(session.buffer)
      batch = %{span: span, sent_at: now, lateness_us: lateness_us}
      {[{:flush, batch, pcm}], %{session | buffer: buffer, slot: batch}}
    else
      {[{:deferred, :jobs}], session}
    end
  end

  @doc "The request in flight has ended: its batch, and a session that may flush again."
  @spec answered(t) :: {batch, t}
  def answered(%{slot: %{} = batch} = session), do: {batch, %{session | slot: :idle}}

  @doc "Frames that wait."
  @spec buffered(t) :: non_neg_integer
  def buffered(session), do: session.buffer.count
end
