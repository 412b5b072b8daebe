"""The session with a simulated clock and no socket."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stt_gateway.session import Deferral, Session
from stt_gateway.session.audio import BufferOverflowError, OverflowPolicy
from stt_gateway.session.messages import Failure, FailureKind, Inference
from stt_gateway.session.schedule import Schedule
from stt_gateway.session.slot import Idle, InFlight
from support import RecordingWorld, rules

FRAME = bytes(640)
TIMEOUT = Failure(FailureKind.TIMEOUT, "no answer in time")


def answer(frames: int) -> Inference:
    return Inference(1.0, 2, 3, 4, "now", frames * 640)


def push(session: Session, count: int, now: float = 0.0) -> None:
    for _ in range(count):
        session.audio.push(FRAME, now)


# The schedule


@given(
    origin=st.floats(0, 1e6),
    interval_s=st.floats(0.001, 100),
    lateness=st.lists(st.floats(0, 10), min_size=1, max_size=50),
)
def test_the_schedule_is_absolute(origin: float, interval_s: float, lateness: list[float]) -> None:
    schedule = Schedule(origin, interval_s)
    last = 0
    for late in lateness:
        due = schedule.due
        number = round((due - origin) / interval_s)
        assert due == origin + number * interval_s, "whatever was late before"
        assert number > last
        now = due + late
        assert schedule.take(now) == due
        assert schedule.due >= now - 1e-6, "what has been missed is not made up for"
        assert schedule.due <= now + interval_s * 1.001
        last = number


def test_a_flush_says_how_late_it_is_and_moves_no_other() -> None:
    session, world = Session(rules(), start=10.0, jitter_s=0.5), RecordingWorld()
    push(session, 1)
    assert session.due == 11.5
    flight = session.tick(11.75, 0, world)
    assert flight is not None
    assert flight.flush_lateness_ms == 250.0
    assert session.due == 12.5


def test_an_empty_buffer_does_nothing() -> None:
    session, world = Session(rules(), 0.0, 0.0), RecordingWorld()
    assert session.tick(1.0, 99, world) is None
    assert world.messages == []
    assert world.deferrals == []


# One in flight


def test_only_an_empty_slot_can_begin_a_request() -> None:
    assert hasattr(Idle, "begin")
    assert not hasattr(InFlight, "begin")


def test_a_tick_behind_a_request_defers_and_the_audio_waits() -> None:
    session, world = Session(rules(), 0.0, 0.0), RecordingWorld()
    push(session, 5)
    first = session.tick(1.0, 0, world)
    assert first is not None
    push(session, 50)
    assert session.tick(2.0, 0, world) is None
    push(session, 50)
    assert session.tick(3.0, 0, world) is None
    assert world.deferrals == [Deferral.IN_FLIGHT] * 2
    session.answer(first, answer(5), 3.5, world)
    second = session.tick(4.0, 0, world)
    assert second is not None
    assert second.span[:2] == (6, 105)
    assert len(second.take_pcm()) == 100 * 640
    assert world.named() == [("partial", 1, 5)]


def test_an_answer_to_another_request_is_ignored() -> None:
    session, world = Session(rules(), 0.0, 0.0), RecordingWorld()
    push(session, 1)
    first = session.tick(1.0, 0, world)
    assert first is not None
    session.answer(first, TIMEOUT, 1.5, world)
    push(session, 1)
    second = session.tick(2.0, 0, world)
    session.answer(first, answer(1), 2.1, world)
    assert second is not None
    assert session.is_in_flight
    assert world.named() == [("timeout", 1, 1)]


def test_a_failure_names_its_frames_and_their_ages() -> None:
    session, world = Session(rules(), 0.0, 0.0), RecordingWorld()
    push(session, 1, now=0.25)
    push(session, 1, now=0.75)
    flight = session.tick(1.0, 0, world)
    assert flight is not None
    push(session, 3, now=1.1)
    session.answer(flight, TIMEOUT, 1.25, world)
    (message,) = world.messages
    assert (message["oldest_age_ms"], message["newest_age_ms"]) == (1000.0, 500.0)
    assert message["inference_elapsed_ms"] == 250.0
    assert (message["gateway_buffer_frames"], message["inflight_gateway_batches"]) == (3, 3)
    assert world.failures == [FailureKind.TIMEOUT]


# Limits


def test_at_the_gateways_cap_a_tick_defers() -> None:
    session, world = Session(rules(), 0.0, 0.0), RecordingWorld()
    world.has_jobs = False
    push(session, 1)
    assert session.tick(1.0, 0, world) is None
    assert world.deferrals == [Deferral.JOBS]
    world.has_jobs = True
    assert session.tick(2.0, 0, world) is not None


def test_a_full_outbox_defers() -> None:
    session, world = Session(rules(outbox=2), 0.0, 0.0), RecordingWorld()
    push(session, 1)
    assert session.tick(1.0, 2, world) is None
    assert world.deferrals == [Deferral.OUTBOX]
    assert session.tick(2.0, 1, world) is not None


def test_an_overflow_leaves_room_in_the_outbox_for_the_batch_or_the_batch_waits() -> None:
    session, world = Session(rules(outbox=1, frames_max=2), 0.0, 0.0), RecordingWorld()
    push(session, 5)
    assert session.tick(1.0, 0, world) is None
    assert world.named() == [("overflow", 1, 3)]
    assert session.tick(2.0, 0, world) is not None


# Overflow


def test_drop_oldest_names_what_it_dropped_before_the_batch() -> None:
    session, world = Session(rules(frames_max=20), 0.0, 0.0), RecordingWorld()
    push(session, 50)
    flight = session.tick(1.0, 0, world)
    assert flight is not None
    session.answer(flight, answer(20), 1.1, world)
    assert world.named() == [("overflow", 1, 30), ("partial", 31, 50)]
    assert (session.audio.received, session.audio.dropped) == (50, 30)


def test_drop_newest_names_what_it_dropped_behind_the_batch() -> None:
    session, world = Session(rules(frames_max=20, policy=OverflowPolicy.DROP_NEWEST), 0.0, 0.0), RecordingWorld()
    push(session, 50)
    flight = session.tick(1.0, 0, world)
    assert flight is not None
    push(session, 2)
    session.answer(flight, answer(20), 1.1, world)
    flight = session.tick(2.0, 0, world)
    assert flight is not None
    session.answer(flight, answer(2), 2.1, world)
    assert world.named() == [("partial", 1, 20), ("overflow", 21, 50), ("partial", 51, 52)]


def test_close_on_overflow_takes_as_many_as_fit() -> None:
    session = Session(rules(frames_max=20, policy=OverflowPolicy.CLOSE), 0.0, 0.0)
    push(session, 20)
    with pytest.raises(BufferOverflowError):
        push(session, 1)
    assert session.audio.received == 20


# The ledger

STEP = st.one_of(
    st.tuples(st.just("frames"), st.integers(1, 30)),
    st.tuples(st.just("tick"), st.integers(0, 4)),
    st.tuples(st.just("jobs"), st.booleans()),
    st.tuples(st.just("answer"), st.sampled_from(["partial", "error"])),
)


@given(
    policy=st.sampled_from([OverflowPolicy.DROP_OLDEST, OverflowPolicy.DROP_NEWEST]),
    frames_max=st.integers(1, 40),
    outbox=st.integers(1, 4),
    steps=st.lists(STEP, max_size=80),
)
def test_every_frame_is_named_once_and_in_order(
    policy: OverflowPolicy, frames_max: int, outbox: int, steps: list[tuple[str, Any]]
) -> None:
    session, world = Session(rules(frames_max=frames_max, policy=policy, outbox=outbox), 0.0, 0.0), RecordingWorld()
    flight: InFlight | None = None
    sent = 0
    for what, value in steps:
        now = session.due
        if what == "frames":
            for _ in range(value):
                sent += 1
                session.audio.push(sent.to_bytes(8, "big") * 80, now)
        elif what == "jobs":
            world.has_jobs = value
        elif what == "tick":
            before = len(world.messages)
            begun = session.tick(now, value, world)
            assert begun is None or flight is None, "never two"
            assert value + len(world.messages) - before + (begun is not None) <= max(value, outbox)
            flight = begun or flight
            if begun is not None:
                check_audio(begun)
        elif flight is not None:
            session.answer(flight, answer(flight.span.frames) if value == "partial" else TIMEOUT, now, world)
            flight = None
    settle(session, world, flight)
    assert session.audio.received == sent
    expected = 1
    for _, oldest, newest in world.named():
        assert oldest == expected
        assert newest >= oldest
        expected = newest + 1
    assert expected == sent + 1, "all of them"
    dropped = sum(message["frames"] for message in world.messages if message.get("kind") == "overflow")
    assert dropped == session.audio.dropped


def check_audio(flight: InFlight) -> None:
    """The batch is the audio of the frames that it says."""
    pcm, span = flight.take_pcm(), flight.span
    assert len(pcm) == span.audio_bytes
    for place, seq in enumerate(range(span.oldest_seq, span.newest_seq + 1)):
        assert pcm[place * 640 : (place + 1) * 640] == seq.to_bytes(8, "big") * 80


def settle(session: Session, world: RecordingWorld, flight: InFlight | None) -> None:
    """Lets everything be named that waits."""
    world.has_jobs = True
    for _ in range(4):
        if flight is not None:
            session.answer(flight, answer(flight.span.frames), session.due, world)
        flight = session.tick(session.due, 0, world)
    assert not session.audio.is_waiting
