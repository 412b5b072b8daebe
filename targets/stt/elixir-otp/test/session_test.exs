defmodule Gateway.SessionTest do
  use ExUnit.Case, async: true

  import Gateway.Simulation

  alias Gateway.Session

  test "the schedule is absolute: late ticks move no later ones" do
    simulation =
      Enum.reduce([0, 300, 700, 999, 0, 0, 0], started(%{}, 250), fn late_ms, simulation ->
        simulation |> frames(1) |> pass(1000 + late_ms, late_ms) |> answer(:ok)
      end)

    for {:flush, _frames, lateness_ns} <- simulation.tally, do: assert(lateness_ns in 0..999_000_000)
    flushed = Enum.zip(simulation.flushes, for({:flush, _, lateness_ns} <- simulation.tally, do: lateness_ns))
    assert length(flushed) >= 4
    # Whatever the delay of each: it happened at 250 + k * 1000, plus its lateness.
    for {{at_ms, _frames}, lateness_ns} <- flushed, do: assert(rem(at_ms - div(lateness_ns, 1_000_000), 1000) == 250)
  end

  test "a tick that was missed altogether is not made up for" do
    simulation = started() |> frames(3)
    # Nobody wakes it for five and a half intervals.
    {:flush, _pcm, session} = Session.on_wake(simulation.session, 5_500_000_000, fn -> true end)
    assert {[{:flush, 3, 4_500_000_000} | _], session} = Session.take_tally(session)
    assert Session.wake_at(session) == 6_000_000_000
  end

  test "an empty buffer at a tick does nothing" do
    simulation = started() |> pass(10_000)
    assert simulation.flushes == [] and simulation.tally == [] and told(simulation) == []
  end

  test "while a request is in flight ticks do nothing, and the audio waits" do
    simulation = started() |> frames(5) |> pass(1000) |> frames(7) |> pass(3500)
    assert simulation.flushes == [{1000, 5}]
    assert Enum.count(simulation.tally, &(&1 == {:deferred, :inflight})) == 3
    simulation = simulation |> answer(:ok) |> pass(1000) |> answer(:ok)
    assert Enum.reverse(simulation.flushes) == [{1000, 5}, {5000, 7}]
    assert told(simulation) == [{"partial", 1, 5}, {"partial", 6, 12}]
  end

  test "a request that is not answered in time is named by an error, and given up" do
    simulation = started() |> frames(2) |> pass(5999)
    assert told(simulation) == []
    simulation = pass(simulation, 1)
    assert told(simulation) == [{"timeout", 1, 2}]
    assert simulation.in_flight? == false
    # The late answer is nobody's.
    assert told(answer(simulation, :ok)) == [{"timeout", 1, 2}]
  end

  test "at the gateway's cap a tick defers" do
    simulation = %{started() | jobs?: false} |> frames(2) |> pass(2000)
    assert simulation.flushes == [] and {:deferred, :jobs} in simulation.tally
    assert pass(%{simulation | jobs?: true}, 1000).flushes == [{3000, 2}]
  end

  test "a full outbox defers ticks until the client reads" do
    simulation =
      Enum.reduce(1..4, started(%{outbox_messages_max: 2}), fn _, simulation ->
        simulation |> frames(1) |> pass(1000) |> answer(:ok)
      end)

    assert simulation.flushes == [{2000, 1}, {1000, 1}]
    assert Enum.count(simulation.tally, &(&1 == {:deferred, :outbox})) == 2
    simulation = simulation |> read(1) |> pass(1000) |> answer(:ok)
    assert told(simulation) == [{"partial", 1, 1}, {"partial", 2, 2}, {"partial", 3, 4}]
  end

  test "drop_oldest names what it dropped before what is left" do
    simulation = started(%{buffer_frames_max: 20}) |> frames(50) |> pass(1000) |> answer(:ok)
    assert told(simulation) == [{"overflow", 1, 30}, {"partial", 31, 50}]
    assert {:dropped, 30} in simulation.tally and {:frames, 50} in simulation.tally
  end

  test "drops behind a request in flight are named after it" do
    simulation = started(%{buffer_frames_max: 20}) |> frames(5) |> pass(1000) |> frames(50) |> pass(1000)
    simulation = simulation |> answer(:ok) |> pass(1000) |> answer(:http_429)
    assert told(simulation) == [{"partial", 1, 5}, {"overflow", 6, 35}, {"http_429", 36, 55}]
  end

  test "drop_newest names what it dropped after what was there" do
    settings = %{buffer_frames_max: 20, overflow_policy: :drop_newest}
    simulation = started(settings) |> frames(50) |> pass(1000) |> answer(:ok) |> pass(1000)
    assert told(simulation) == [{"partial", 1, 20}, {"overflow", 21, 50}]
  end

  test "close refuses the frame that is too many" do
    simulation = started(%{buffer_frames_max: 20, overflow_policy: :close}) |> frames(20)
    assert Session.on_binary(simulation.session, 0, <<0::5120>>) == {:close, :overflow}
  end

  test "the start" do
    session = Session.new(settings(), 0, 0)
    assert Session.on_text(session, 0, "{}") == {:close, :protocol}
    assert Session.on_binary(session, 0, <<0::5120>>) == {:close, :protocol}
    assert Session.wake_at(session) == 10_000_000_000
    assert Session.on_wake(session, 9_999_999_999, fn -> true end) == {:ok, session}
    assert Session.on_wake(session, 10_000_000_000, fn -> true end) == {:close, :protocol}
  end

  test "a drain waits for what is in flight, and not for ever" do
    busy = started() |> frames(1) |> pass(1000)
    session = Session.drain(busy.session, 3_000_000_000)
    refute Session.drained?(session)
    assert Session.drained?(answer(%{busy | session: session}, :ok).session)
    assert Session.on_wake(session, 3_000_000_000, fn -> true end) == {:close, :going_away}
    assert Session.drained?(Session.drain(started().session, 0))
  end
end
