defmodule Gateway.SessionTest do
  use ExUnit.Case, async: true

  import Gateway.Simulation

  alias Gateway.Session

  test "the schedule is absolute: a late tick moves no later one" do
    simulation =
      Enum.reduce([0, 300, 700, 999, 0, 0], started(%{}, 250), fn late_ms, simulation ->
        simulation |> frames(1) |> pass(1000, late_ms) |> answer() |> read()
      end)

    flushes = for {:flush, at, _frames, late} <- ticks(simulation), do: {at, late}
    assert length(flushes) >= 4
    for {at, late} <- flushes, do: assert(late in 0..999 and rem(at - late, 1000) == 250)
  end

  test "several overdue ticks make one flush" do
    simulation = started() |> frames(3)

    {[{:flush, batch, _pcm}], session} =
      Session.tick(simulation.session, 5_500_000, 4, fn -> true end)

    assert batch.lateness_us == 4_500_000
    assert session.next_tick_at == 6_000_000
  end

  test "a tick that finds nothing does nothing, also while a request is in flight" do
    assert ticks(pass(started(), 10_000)) == []
    assert [{:flush, 1000, 1, 0}] = started() |> frames(1) |> pass(5000) |> ticks()
  end

  test "while a request is in flight ticks are deferred, and the audio waits" do
    simulation = started() |> frames(5) |> pass(1000) |> frames(7) |> pass(3500)
    assert Enum.count(ticks(simulation), &(&1 == {:deferred, :inflight})) == 3
    simulation = simulation |> answer() |> pass(1000) |> answer()
    assert told(simulation) == [{:partial, 1, 5}, {:partial, 6, 12}]
    assert {:flush, 5000, 7, 0} in ticks(simulation)
  end

  test "at the cap of jobs a tick is deferred" do
    simulation = %{started() | jobs?: false} |> frames(2) |> pass(2000)
    assert ticks(simulation) == [{:deferred, :jobs}, {:deferred, :jobs}]
    assert {:flush, 3000, 2, 0} in ticks(pass(%{simulation | jobs?: true}, 1000))
  end

  test "a full outbox defers ticks until the client reads" do
    simulation =
      Enum.reduce(1..6, started(), fn _, simulation ->
        simulation |> frames(1) |> pass(1000) |> answer()
      end)

    assert Enum.count(ticks(simulation), &(&1 == {:deferred, :outbox})) == 2
    simulation = simulation |> read() |> pass(1000) |> answer()
    assert List.last(told(simulation)) == {:partial, 5, 6}
  end

  test "drop_oldest names what it dropped before what is left" do
    simulation = started(%{"MAX_BUFFER_FRAMES" => "20"}) |> frames(50) |> pass(1000) |> answer()
    assert told(simulation) == [{:overflow, 1, 30}, {:partial, 31, 50}]
  end

  test "drops behind a request in flight are named after its answer" do
    simulation = started(%{"MAX_BUFFER_FRAMES" => "20"}) |> frames(5) |> pass(1000)

    simulation =
      simulation |> frames(50) |> pass(1000) |> answer() |> pass(1000) |> answer(:http_429)

    assert told(simulation) == [{:partial, 1, 5}, {:overflow, 6, 35}, {:http_429, 36, 55}]
  end

  test "drop_newest names what it dropped after what was there" do
    variables = %{"MAX_BUFFER_FRAMES" => "20", "OVERFLOW_POLICY" => "drop_newest"}
    simulation = started(variables) |> frames(50) |> pass(1000) |> answer() |> pass(1000)
    assert told(simulation) == [{:partial, 1, 20}, {:overflow, 21, 50}]
  end

  test "close refuses the frame that is too many" do
    variables = %{"MAX_BUFFER_FRAMES" => "20", "OVERFLOW_POLICY" => "close"}
    assert Session.push(frames(started(variables), 20).session, 0, <<0::5120>>) == :full
  end

  for policy <- ["drop_oldest", "drop_newest"] do
    test "in random histories each frame is named exactly once, in order (#{policy})" do
      variables = %{"MAX_BUFFER_FRAMES" => "30", "OVERFLOW_POLICY" => unquote(policy)}

      for seed <- 1..500 do
        :rand.seed(:exsss, seed)
        {simulation, sent} = Enum.reduce(1..60, {started(variables, 100), 0}, &random_step/2)
        # An outbox that was full for long is not overfilled.
        assert simulation.room >= -1

        named =
          simulation
          |> settle()
          |> told()
          |> Enum.flat_map(fn {_, a, b} -> Enum.to_list(a..b) end)

        assert named == Enum.to_list(1..sent//1), "seed #{seed}"
      end
    end
  end

  defp random_step(_step, {simulation, sent}) do
    case :rand.uniform(6) do
      1 -> send_frames(simulation, sent, :rand.uniform(60))
      2 -> send_frames(simulation, sent, :rand.uniform(5))
      3 -> {pass(simulation, :rand.uniform(3000), :rand.uniform(1500)), sent}
      4 -> {answer(simulation, Enum.random([:partial, :timeout, :parse_error])), sent}
      5 -> {read(simulation), sent}
      6 -> {%{simulation | jobs?: :rand.uniform(2) == 1}, sent}
    end
  end

  defp send_frames(simulation, sent, count), do: {frames(simulation, count), sent + count}

  defp settle(simulation) do
    Enum.reduce(1..4, %{simulation | jobs?: true}, fn _, it ->
      it |> read() |> pass(1000) |> answer()
    end)
  end
end
