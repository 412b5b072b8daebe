defmodule Gateway.LedgerTest do
  @moduledoc """
  Random histories: whatever happens to a session, each frame it accepted is named exactly once, in order.
  """
  use ExUnit.Case, async: true

  import Gateway.Simulation

  @histories 1000
  @outbox_max 2
  @buffer_max 30

  for policy <- [:drop_oldest, :drop_newest] do
    test "each frame is named exactly once, in order (#{policy})" do
      property = :proper.forall(:proper_types.list(event()), &history_holds?(unquote(policy), &1))

      unless :proper.quickcheck(property, [:quiet, numtests: @histories]) do
        flunk("fails for #{inspect(:proper.counterexample(), limit: :infinity)}")
      end
    end
  end

  defp event do
    integer = &:proper_types.integer/2
    failures = [:ok, :ok, :ok, :timeout, :connection_reset, :http_5xx, :parse_error]

    :proper_types.oneof([
      {:frames, integer.(1, 60)},
      {:frames, integer.(1, 5)},
      {:pass, integer.(0, 3000), integer.(0, 1500)},
      {:answer, :proper_types.oneof(failures)},
      {:read, integer.(1, 3)},
      {:jobs, :proper_types.boolean()}
    ])
  end

  # A second request in flight raises in the simulation.
  defp history_holds?(policy, events) do
    settings = %{overflow_policy: policy, buffer_frames_max: @buffer_max, outbox_messages_max: @outbox_max}
    {simulation, sent} = Enum.reduce(events, {started(settings, 100), 0}, &step/2)

    # A tick that is not deferred adds one report of drops, and an answer.
    bounded? = simulation.session.outbox_messages <= @outbox_max + 2

    settled =
      Enum.reduce(1..4, %{simulation | jobs?: true}, fn _, it -> it |> read(:all) |> pass(1000) |> answer(:ok) end)

    named = Enum.flat_map(told(settled), fn {_kind, oldest, newest} -> Enum.to_list(oldest..newest) end)
    bounded? and named == Enum.take(1..max(sent, 1), sent)
  end

  defp step({:frames, count}, {simulation, sent}), do: {frames(simulation, count), sent + count}
  defp step({:pass, ms, late_ms}, {simulation, sent}), do: {pass(simulation, ms, late_ms), sent}
  defp step({:answer, how}, {simulation, sent}), do: {answer(simulation, how), sent}
  defp step({:read, count}, {simulation, sent}), do: {read(simulation, count), sent}
  defp step({:jobs, jobs?}, {simulation, sent}), do: {%{simulation | jobs?: jobs?}, sent}
end
