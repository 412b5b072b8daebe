defmodule Gateway.Simulation do
  @moduledoc """
  Drives a session with a simulated clock, in milliseconds. Time goes from tick to tick.
  """

  alias Gateway.{Config, Session}

  defstruct now: 0, session: nil, room: 4, jobs?: true, in_flight?: false, told: [], ticks: []

  @type t :: %__MODULE__{}

  @doc "A session that was started at time 0."
  @spec started(map, non_neg_integer) :: t
  def started(variables \\ %{}, jitter_ms \\ 0) do
    {:ok, config} = Config.load(&variables[&1])
    %__MODULE__{session: Session.new(config, 0, jitter_ms * 1000)}
  end

  @doc "The client sends frames."
  @spec frames(t, non_neg_integer) :: t
  def frames(simulation, 0), do: simulation

  def frames(simulation, count) do
    {_fate, session} = Session.push(simulation.session, simulation.now * 1000, <<count::5120>>)
    frames(%{simulation | session: session}, count - 1)
  end

  @doc "Lets time pass. Each timer fires `late_ms` late."
  @spec pass(t, non_neg_integer, non_neg_integer) :: t
  def pass(simulation, time_ms, late_ms \\ 0) do
    pass_until(simulation, simulation.now + time_ms, late_ms)
  end

  defp pass_until(simulation, until, late_ms) do
    at = max(div(simulation.session.next_tick_at, 1000) + late_ms, simulation.now)

    if at <= until do
      %{simulation | now: at} |> tick() |> pass_until(until, late_ms)
    else
      %{simulation | now: until}
    end
  end

  defp tick(simulation) do
    reserve = fn -> simulation.jobs? end

    {actions, session} =
      Session.tick(simulation.session, simulation.now * 1000, simulation.room, reserve)

    Enum.reduce(actions, %{simulation | session: session}, &act/2)
  end

  defp act({:deferred, reason}, simulation), do: record(simulation, {:deferred, reason})
  defp act({:overflow, span, _lateness_us}, simulation), do: tell(simulation, :overflow, span)

  defp act({:flush, batch, pcm}, simulation) do
    if simulation.in_flight?, do: raise("a second request in flight")
    frames = batch.span.newest_seq - batch.span.oldest_seq + 1
    ^frames = div(byte_size(pcm), 640)
    entry = {:flush, simulation.now, frames, div(batch.lateness_us, 1000)}
    record(%{simulation | in_flight?: true}, entry)
  end

  @doc "The inference server answers, if it was asked."
  @spec answer(t, atom) :: t
  def answer(simulation, kind \\ :partial)
  def answer(%{in_flight?: false} = simulation, _kind), do: simulation

  def answer(simulation, kind) do
    {batch, session} = Session.answered(simulation.session)
    tell(%{simulation | session: session, in_flight?: false}, kind, batch.span)
  end

  @doc "The client reads all that it was sent."
  @spec read(t) :: t
  def read(simulation), do: %{simulation | room: 4}

  @doc "What the client was told: `{kind, first frame, last frame}`, in order."
  @spec told(t) :: [{atom, pos_integer, pos_integer}]
  def told(simulation), do: Enum.reverse(simulation.told)

  @doc "What the ticks did, in order."
  @spec ticks(t) :: [tuple]
  def ticks(simulation), do: Enum.reverse(simulation.ticks)

  defp record(simulation, entry), do: %{simulation | ticks: [entry | simulation.ticks]}

  defp tell(simulation, kind, span) do
    told = [{kind, span.oldest_seq, span.newest_seq} | simulation.told]
    %{simulation | told: told, room: simulation.room - 1}
  end
end
