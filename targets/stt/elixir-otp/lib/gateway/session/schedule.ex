defmodule Gateway.Session.Schedule do
  @moduledoc """
  The absolute flush schedule of a session: `start + jitter + k * interval` for k = 1, 2, …
  """

  @enforce_keys [:next_at, :interval]
  defstruct [:next_at, :interval]

  @type t :: %__MODULE__{next_at: integer, interval: pos_integer}

  @doc "The schedule of a session that started at `start`."
  @spec new(integer, non_neg_integer, pos_integer) :: t
  def new(start, jitter, interval), do: %__MODULE__{next_at: start + jitter + interval, interval: interval}

  @doc """
  If a tick is due: the time it was scheduled for, and the schedule from the next tick on that is still to come.

  Ticks that were missed altogether are not made up for, and a late one does not move the later ones.
  """
  @spec due(t, integer) :: {:due, integer, t} | :not_due
  def due(%__MODULE__{next_at: next_at}, now) when now < next_at, do: :not_due

  def due(%__MODULE__{next_at: next_at, interval: interval} = schedule, now) do
    missed = div(now - next_at, interval)
    {:due, next_at, %{schedule | next_at: next_at + (missed + 1) * interval}}
  end
end
