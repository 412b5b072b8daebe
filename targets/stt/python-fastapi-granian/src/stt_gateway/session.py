"""A session's rules without I/O: schedule, input buffer, ledger. The clock is passed in."""

import math
from collections import deque
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from .config import OverflowPolicy
from .messages import Span


class Offer(Enum):
    """What became of a frame."""

    KEPT = auto()
    DROPPED = auto()
    REFUSED = auto()


class Deferral(StrEnum):
    """Why a tick left its audio waiting."""

    INFLIGHT = "inflight"
    JOBS = "jobs"
    OUTBOX = "outbox"


class Tick(NamedTuple):
    """What a tick asks its caller to do."""

    lateness_ms: float
    deferred: Deferral | None = None
    # Dropped frames to be named now.
    dropped: Span | None = None
    # A batch may be flushed now.
    is_ready: bool = False


class Batch(NamedTuple):
    """The audio of one request."""

    span: Span
    pcm: bytes
    lateness_ms: float


class Session:
    """A started session: `offer` for each frame, `tick` when `due`, `flush` when a tick says so, `answered` after that."""

    def __init__(self, start: float, interval_s: float, frames_max: int, policy: OverflowPolicy) -> None:
        self._start = start
        self._interval_s = interval_s
        self._frames_max = frames_max
        self._policy = policy
        self._ticks = 1
        self._received = 0
        self._buffer: deque[tuple[bytes, float]] = deque()
        # Dropped frames that no message has named yet: those older than the buffer, and those newer (drop_newest).
        # Each is one range, because nothing is kept between two drops on the same side.
        self._lost_before: Span | None = None
        self._lost_behind: Span | None = None
        self._is_in_flight = False

    @property
    def due(self) -> float:
        """When the next tick is due. Multiplied, not added up: no rounding accumulates."""
        return self._start + self._ticks * self._interval_s

    @property
    def buffer_frames(self) -> int:
        """Frames that wait."""
        return len(self._buffer)

    def offer(self, pcm: bytes, now: float) -> Offer:
        """Takes the next frame, and the number that goes with it."""
        is_full = len(self._buffer) >= self._frames_max
        if is_full and self._policy is OverflowPolicy.CLOSE:
            return Offer.REFUSED
        self._received += 1
        if is_full and self._policy is OverflowPolicy.DROP_NEWEST:
            self._lost_behind = _extended(self._lost_behind, self._received, now)
            return Offer.DROPPED
        self._buffer.append((pcm, now))
        if not is_full:
            return Offer.KEPT
        _, arrived_at = self._buffer.popleft()
        self._lost_before = _extended(self._lost_before, self._received - len(self._buffer), arrived_at)
        return Offer.DROPPED

    def tick(self, now: float, outbox_room: int) -> Tick:
        """Runs the tick that is due. The outbox takes `outbox_room` more messages."""
        lateness_ms = max(0.0, now - self.due) * 1000
        # Ticks that were missed are passed over; the later ones stay where they are.
        passed = math.floor((now - self._start) / self._interval_s)
        self._ticks = max(self._ticks, passed) + 1
        if not self._buffer and self._lost_before is None:
            return Tick(lateness_ms)
        if self._is_in_flight:
            return Tick(lateness_ms, Deferral.INFLIGHT)
        if outbox_room <= 0:
            return Tick(lateness_ms, Deferral.OUTBOX)
        dropped, self._lost_before = self._lost_before, None
        if not self._buffer:
            return Tick(lateness_ms, dropped=dropped)
        # The batch's own message needs a place, too.
        if dropped is not None and outbox_room == 1:
            return Tick(lateness_ms, Deferral.OUTBOX, dropped)
        return Tick(lateness_ms, dropped=dropped, is_ready=True)

    def flush(self, lateness_ms: float) -> Batch:
        """The whole buffer as one batch, which is in flight until `answered`."""
        assert not self._is_in_flight
        self._is_in_flight = True
        frames, self._buffer = self._buffer, deque()
        newest_seq = self._received if self._lost_behind is None else self._lost_behind.oldest_seq - 1
        # What drop_newest lost is older than all frames to come.
        self._lost_before, self._lost_behind = self._lost_behind, None
        span = Span(newest_seq - len(frames) + 1, newest_seq, frames[0][1], frames[-1][1])
        return Batch(span, b"".join(pcm for pcm, _ in frames), lateness_ms)

    def answered(self) -> None:
        """The request has come back, or never will."""
        self._is_in_flight = False


def _extended(span: Span | None, seq: int, at: float) -> Span:
    if span is None:
        return Span(seq, seq, at, at)
    return Span(span.oldest_seq, seq, span.oldest_at, at)
