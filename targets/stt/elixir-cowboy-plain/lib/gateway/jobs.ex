defmodule Gateway.Jobs do
  @moduledoc """
  The requests in flight in the whole gateway, and their cap.

  An atomic and no process: a tick must not wait for another process to be allowed a request.
  """

  @doc "Begins with no request in flight; a cap of 0 is none."
  @spec reset(non_neg_integer) :: :ok
  def reset(max), do: :persistent_term.put(__MODULE__, {:atomics.new(1, signed: true), max})

  @doc "Takes a place, unless all are taken."
  @spec acquire :: boolean
  def acquire do
    {count, max} = :persistent_term.get(__MODULE__)
    granted = :atomics.add_get(count, 1, 1) <= max or max == 0
    unless granted, do: release()
    granted
  end

  @spec release :: :ok
  def release do
    {count, _max} = :persistent_term.get(__MODULE__)
    :atomics.sub(count, 1, 1)
  end

  @spec count :: non_neg_integer
  def count do
    {count, max} = :persistent_term.get(__MODULE__)
    taken = :atomics.get(count, 1)
    # One that is being refused is counted for a moment.
    if max > 0, do: min(taken, max), else: taken
  end
end
