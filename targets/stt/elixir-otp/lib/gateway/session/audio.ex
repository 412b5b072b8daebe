defmodule Gateway.Session.Audio do
  @moduledoc """
  Numbers the frames of a session and holds those that wait for the next flush.

  Frames leave in the order of their numbers, in up to three ranges: dropped before the buffer, buffered, dropped after
  it. Under `:drop_oldest` only the first kind of drop occurs; under `:drop_newest` drops fall behind the buffer, and are
  before it once it has been taken.

  A payload is kept as the binary that unmasking made; nothing is copied per frame. A batch leaves as one binary, which is
  one copy a second: as a list of fifty it would be fifty references to be copied into gun's process and counted there,
  and fifty parts of a write, which takes a tenth of the CPU time of a whole session more.
  """

  alias Gateway.Messages

  @enforce_keys [:policy, :frames_max]
  defstruct [
    :policy,
    :frames_max,
    next_seq: 1,
    frames: 0,
    # {arrival, payload}, oldest at the front.
    waiting: :queue.new(),
    dropped_before: nil,
    dropped_after: nil,
    # Drops since the last `take_drop_count/1`.
    drops: 0
  ]

  @type policy :: :drop_oldest | :drop_newest | :close
  @type t :: %__MODULE__{}
  @type batch :: %{span: Messages.span(), pcm: binary}

  @spec new(policy, pos_integer) :: t
  def new(policy, frames_max), do: %__MODULE__{policy: policy, frames_max: frames_max}

  @doc "Takes in the next frame; `:full` when the policy is to close instead of dropping."
  @spec push(t, integer, binary) :: {:ok, t} | :full
  def push(%__MODULE__{frames: frames, frames_max: frames_max} = audio, now, payload) when frames < frames_max do
    {:ok,
     %{audio | next_seq: audio.next_seq + 1, frames: frames + 1, waiting: :queue.in({now, payload}, audio.waiting)}}
  end

  def push(%__MODULE__{policy: :drop_oldest} = audio, now, payload) do
    oldest_seq = oldest_seq(audio)
    {{:value, {arrival, _payload}}, waiting} = :queue.out(audio.waiting)

    {:ok,
     %{
       audio
       | next_seq: audio.next_seq + 1,
         waiting: :queue.in({now, payload}, waiting),
         dropped_before: extend(audio.dropped_before, oldest_seq, arrival),
         drops: audio.drops + 1
     }}
  end

  def push(%__MODULE__{policy: :drop_newest} = audio, now, _payload) do
    {:ok,
     %{
       audio
       | next_seq: audio.next_seq + 1,
         dropped_after: extend(audio.dropped_after, audio.next_seq, now),
         drops: audio.drops + 1
     }}
  end

  def push(%__MODULE__{policy: :close}, _now, _payload), do: :full

  @doc "Whether a tick would find anything to send or to report."
  @spec waiting?(t) :: boolean
  def waiting?(audio), do: audio.frames > 0 or audio.dropped_before != nil

  @doc "The dropped frames that come before the buffered ones. To be reported before `take/1`."
  @spec take_dropped(t) :: {Messages.span() | nil, t}
  def take_dropped(audio), do: {audio.dropped_before, %{audio | dropped_before: nil}}

  @doc "How many frames were dropped since this was last asked."
  @spec take_drop_count(t) :: {non_neg_integer, t}
  def take_drop_count(audio), do: {audio.drops, %{audio | drops: 0}}

  @doc "Takes the whole buffer."
  @spec take(t) :: {batch | nil, t}
  def take(%__MODULE__{frames: 0} = audio), do: {nil, audio}

  def take(%__MODULE__{dropped_before: nil} = audio) do
    {oldest_at, _payload} = :queue.get(audio.waiting)
    {newest_at, _payload} = :queue.get_r(audio.waiting)
    oldest_seq = oldest_seq(audio)

    span = %{
      oldest_seq: oldest_seq,
      newest_seq: oldest_seq + audio.frames - 1,
      oldest_at: oldest_at,
      newest_at: newest_at
    }

    pcm = for {_arrival, payload} <- :queue.to_list(audio.waiting), into: <<>>, do: payload
    emptied = %{audio | frames: 0, waiting: :queue.new(), dropped_before: audio.dropped_after, dropped_after: nil}
    {%{span: span, pcm: pcm}, emptied}
  end

  defp oldest_seq(%{dropped_after: nil} = audio), do: audio.next_seq - audio.frames
  defp oldest_seq(audio), do: audio.next_seq - audio.frames - Messages.frames(audio.dropped_after)

  # Lengthens a range of dropped frames by the one that follows it.
  defp extend(nil, seq, at), do: %{oldest_seq: seq, newest_seq: seq, oldest_at: at, newest_at: at}

  defp extend(%{newest_seq: newest} = span, seq, at) when seq == newest + 1,
    do: %{span | newest_seq: seq, newest_at: at}
end
