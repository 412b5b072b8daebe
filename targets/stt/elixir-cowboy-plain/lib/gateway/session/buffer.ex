defmodule Gateway.Session.Buffer do
  @moduledoc """
  The frames of a session that wait for a flush, and the ledger of those that were dropped.

  Frames are numbered as they come. So what is here is one run of numbers, in up to three ranges: dropped before the
  kept ones, kept, dropped behind them. `:drop_oldest` makes only the first kind of drop, `:drop_newest` the last, which
  becomes the first once the kept ones have been taken.
  """

  @enforce_keys [:policy, :max]
  defstruct [
    :policy,
    :max,
    next_seq: 1,
    count: 0,
    # {arrival, pcm}, oldest first.
    kept: :queue.new(),
    dropped_before: nil,
    dropped_behind: nil
  ]

  @typedoc "Consecutive frames with the arrival of the first and the last, in microseconds."
  @type span :: %{oldest_seq: pos_integer, newest_seq: pos_integer, oldest_at: integer, newest_at: integer}
  @type policy :: :drop_oldest | :drop_newest | :close
  @type t :: %__MODULE__{}

  @spec new(policy, pos_integer) :: t
  def new(policy, max), do: %__MODULE__{policy: policy, max: max}

  @doc "Takes the next frame; `:full` where the policy is to close instead of dropping."
  @spec push(t, integer, binary) :: {:kept | :dropped, t} | :full
  def push(%__MODULE__{count: count, max: max} = buffer, now, pcm) when count < max do
    {:kept, keep(%{buffer | count: count + 1}, now, pcm)}
  end

  def push(%__MODULE__{policy: :drop_oldest} = buffer, now, pcm) do
    oldest_seq = oldest_seq(buffer)
    {{:value, {arrival, _pcm}}, kept} = :queue.out(buffer.kept)
    dropped = extend(buffer.dropped_before, oldest_seq, arrival)
    {:dropped, keep(%{buffer | kept: kept, dropped_before: dropped}, now, pcm)}
  end

  def push(%__MODULE__{policy: :drop_newest, next_seq: seq} = buffer, now, _pcm) do
    dropped = extend(buffer.dropped_behind, seq, now)
    {:dropped, %{buffer | next_seq: seq + 1, dropped_behind: dropped}}
  end

  def push(%__MODULE__{policy: :close}, _now, _pcm), do: :full

  @doc "Whether a tick would find nothing to send and nothing to report."
  @spec empty?(t) :: boolean
  def empty?(buffer), do: buffer.count == 0 and buffer.dropped_before == nil

  @doc "Takes the range of dropped frames that comes before the kept ones."
  @spec take_dropped(t) :: {span | nil, t}
  def take_dropped(buffer), do: {buffer.dropped_before, %{buffer | dropped_before: nil}}

  @doc "Takes all kept frames, as one binary."
  @spec take(t) :: {span, binary, t}
  def take(%__MODULE__{count: count, dropped_before: nil} = buffer) when count > 0 do
    {oldest_at, _pcm} = :queue.get(buffer.kept)
    {newest_at, _pcm} = :queue.get_r(buffer.kept)
    oldest_seq = oldest_seq(buffer)
    newest_seq = oldest_seq + count - 1
    pcm = for {_arrival, frame} <- :queue.to_list(buffer.kept), into: <<>>, do: frame

    rest = %{buffer | count: 0, kept: :queue.new(), dropped_before: buffer.dropped_behind, dropped_behind: nil}

    {span(oldest_seq, newest_seq, oldest_at, newest_at), pcm, rest}
  end

  defp keep(buffer, now, pcm) do
    %{buffer | next_seq: buffer.next_seq + 1, kept: :queue.in({now, pcm}, buffer.kept)}
  end

  defp oldest_seq(%{dropped_behind: nil} = buffer), do: buffer.next_seq - buffer.count
  defp oldest_seq(buffer), do: buffer.dropped_behind.oldest_seq - buffer.count

  # Lengthens a range of dropped frames by the one that follows it.
  defp extend(nil, seq, at), do: span(seq, seq, at, at)

  defp extend(%{newest_seq: newest} = span, seq, at) when seq == newest + 1 do
    %{span | newest_seq: seq, newest_at: at}
  end

  defp span(oldest_seq, newest_seq, oldest_at, newest_at) do
    %{oldest_seq: oldest_seq, newest_seq: newest_seq, oldest_at: oldest_at, newest_at: newest_at}
  end
end
