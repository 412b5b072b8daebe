"""The session with a simulated clock and no socket."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stt_gateway.config import OverflowPolicy
from stt_gateway.messages import Span
from stt_gateway.session import Batch, Deferral, Offer, Session

FRAME = bytes(640)
ROOM = 4


def session(frames_max: int = 500, policy: OverflowPolicy = OverflowPolicy.DROP_OLDEST, start: float = 0.0) -> Session:
    return Session(start, 1.0, frames_max, policy)


def offer(subject: Session, count: int, now: float = 0.0) -> list[Offer]:
    return [subject.offer(FRAME, now) for _ in range(count)]


def flushed(subject: Session, now: float) -> Batch:
    tick = subject.tick(now, ROOM)
    assert tick.is_ready
    return subject.flush(tick.lateness_ms)


def named(span: Span | None) -> tuple[int, int] | None:
    return None if span is None else (span.oldest_seq, span.newest_seq)


# The schedule


@given(
    start=st.floats(0, 1e6),
    interval_s=st.floats(0.001, 100),
    lateness=st.lists(st.floats(0, 10), min_size=1, max_size=50),
)
def test_the_schedule_is_absolute(start: float, interval_s: float, lateness: list[float]) -> None:
    subject = Session(start, interval_s, 500, OverflowPolicy.DROP_OLDEST)
    last = 0
    for late in lateness:
        due = subject.due
        number = round((due - start) / interval_s)
        assert due == start + number * interval_s, "whatever was late before"
        assert number > last
        now = due + late
        assert subject.tick(now, ROOM).lateness_ms == pytest.approx(late * 1000, abs=1e-3)
        assert subject.due >= now - 1e-6, "what has been missed is not made up for"
        assert subject.due <= now + interval_s * 1.001
        last = number


def test_a_flush_says_how_late_it_is_and_moves_no_other() -> None:
    subject = session(start=10.5)
    offer(subject, 1)
    assert subject.due == 11.5
    assert flushed(subject, 11.75).lateness_ms == 250.0
    assert subject.due == 12.5


def test_an_empty_buffer_does_nothing_even_while_a_request_is_in_flight() -> None:
    subject = session()
    offer(subject, 1)
    flushed(subject, 1.0)
    tick = subject.tick(2.0, 0)
    assert (tick.deferred, tick.dropped, tick.is_ready) == (None, None, False)


# One in flight


def test_a_tick_behind_a_request_defers_and_the_audio_waits() -> None:
    subject = session()
    offer(subject, 5)
    assert named(flushed(subject, 1.0).span) == (1, 5)
    offer(subject, 50)
    assert subject.tick(2.0, ROOM).deferred is Deferral.INFLIGHT
    offer(subject, 50)
    assert subject.tick(3.0, ROOM).deferred is Deferral.INFLIGHT
    subject.answered()
    batch = flushed(subject, 4.0)
    assert named(batch.span) == (6, 105)
    assert len(batch.pcm) == 100 * 640


def test_a_second_flush_is_a_mistake() -> None:
    subject = session()
    offer(subject, 1)
    flushed(subject, 1.0)
    offer(subject, 1)
    with pytest.raises(AssertionError):
        subject.flush(0.0)


# Limits


def test_a_full_outbox_defers() -> None:
    subject = session()
    offer(subject, 1)
    assert subject.tick(1.0, 0).deferred is Deferral.OUTBOX
    assert subject.tick(2.0, 1).is_ready


def test_an_overflow_leaves_room_in_the_outbox_for_the_batch_or_the_batch_waits() -> None:
    subject = session(frames_max=2)
    offer(subject, 5)
    tick = subject.tick(1.0, 1)
    assert (named(tick.dropped), tick.deferred, tick.is_ready) == ((1, 3), Deferral.OUTBOX, False)
    assert subject.tick(2.0, 1).is_ready


# Overflow


def test_drop_oldest_names_what_it_dropped_before_the_batch() -> None:
    subject = session(frames_max=20)
    assert offer(subject, 50).count(Offer.DROPPED) == 30
    tick = subject.tick(1.0, ROOM)
    assert named(tick.dropped) == (1, 30)
    assert named(subject.flush(tick.lateness_ms).span) == (31, 50)


def test_drop_newest_names_what_it_dropped_behind_the_batch() -> None:
    subject = session(frames_max=20, policy=OverflowPolicy.DROP_NEWEST)
    assert offer(subject, 50).count(Offer.DROPPED) == 30
    assert named(flushed(subject, 1.0).span) == (1, 20)
    offer(subject, 2)
    subject.answered()
    tick = subject.tick(2.0, ROOM)
    assert named(tick.dropped) == (21, 50)
    assert named(subject.flush(tick.lateness_ms).span) == (51, 52)


def test_close_on_overflow_takes_as_many_as_fit() -> None:
    subject = session(frames_max=20, policy=OverflowPolicy.CLOSE)
    assert offer(subject, 21) == [Offer.KEPT] * 20 + [Offer.REFUSED]


# The ledger

STEP = st.one_of(
    st.tuples(st.just("frames"), st.integers(1, 30)),
    st.tuples(st.just("tick"), st.integers(0, 4)),
    st.tuples(st.just("tick without a job"), st.integers(0, 4)),
    st.tuples(st.just("answer"), st.just(0)),
)


@given(
    policy=st.sampled_from([OverflowPolicy.DROP_OLDEST, OverflowPolicy.DROP_NEWEST]),
    frames_max=st.integers(1, 40),
    steps=st.lists(STEP, max_size=80),
)
def test_every_frame_is_named_once_and_in_order(
    policy: OverflowPolicy, frames_max: int, steps: list[tuple[str, Any]]
) -> None:
    subject = session(frames_max, policy)
    names: list[Span] = []
    in_flight: list[Span] = []
    sent = dropped = 0
    # In the end everything is named that waits.
    for what, value in [*steps, *[("answer", 0), ("tick", 4)] * 4]:
        if what == "frames":
            for _ in range(value):
                sent += 1
                dropped += subject.offer(sent.to_bytes(8, "big") * 80, float(sent)) is Offer.DROPPED
        elif what == "answer":
            names += in_flight
            in_flight.clear()
            subject.answered()
        else:
            tick = subject.tick(subject.due, value)
            assert (tick.dropped is not None) + tick.is_ready <= value, "there is room for all messages"
            if tick.dropped is not None:
                names.append(tick.dropped)
                dropped -= tick.dropped.frames
            if tick.is_ready and what == "tick":
                assert not in_flight, "never two"
                batch = subject.flush(tick.lateness_ms)
                check_audio(batch)
                in_flight.append(batch.span)
    expected = 1
    for span in names:
        assert span.oldest_seq == expected
        assert (span.oldest_at, span.newest_at) == (span.oldest_seq, span.newest_seq), "each frame has its own time"
        expected = span.newest_seq + 1
    assert expected == sent + 1, "all of them"
    assert dropped == 0, "all that were dropped were named as such"


def check_audio(batch: Batch) -> None:
    """The batch is the audio of the frames that it says."""
    assert len(batch.pcm) == batch.span.frames * 640
    for place, seq in enumerate(range(batch.span.oldest_seq, batch.span.newest_seq + 1)):
        assert batch.pcm[place * 640 : (place + 1) * 640] == seq.to_bytes(8, "big") * 80
