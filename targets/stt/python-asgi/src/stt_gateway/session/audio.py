"""The input buffer of a session, and the frames that its overflow policy drops."""

from array import array
from enum import Enum
from typing import NamedTuple

FRAME_BYTES = 640


class OverflowPolicy(Enum):
    """What a full buffer does with one more frame."""

    DROP_OLDEST = "drop_oldest"
    DROP_NEWEST = "drop_newest"
    CLOSE = "close"


class BufferOverflowError(Exception):
    """The buffer is full, and the policy is to close."""


class Span(NamedTuple):
    """Consecutive frames: their numbers, and when the first and the last of them came."""

    oldest_seq: int
    newest_seq: int
    oldest_at: float
    newest_at: float

    @property
    def frames(self) -> int:
        return self.newest_seq - self.oldest_seq + 1

    @property
    def audio_bytes(self) -> int:
        return self.frames * FRAME_BYTES


class AudioBuffer:
    """Frames that wait for the next flush, in one `bytearray` that then becomes the request's body.

    Dropped frames keep their place in the order: `drop_oldest` loses frames older than all that wait, `drop_newest` loses
    frames newer than all that wait. After the buffer was taken, the latter are older than all that wait.
    """

    __slots__ = ("_arrivals", "_capacity", "_lost_after", "_lost_before", "_pcm", "_policy", "dropped", "received")

    def __init__(self, policy: OverflowPolicy, capacity_frames: int) -> None:
        self._policy = policy
        self._capacity = capacity_frames
        self._pcm = bytearray()
        self._arrivals = array("d")
        self._lost_before: Span | None = None
        self._lost_after: Span | None = None
        self.received = 0
        self.dropped = 0

    def push(self, payload: bytes, now: float) -> None:
        """Takes a frame. This is all that a frame costs above the protocol, so it does no more than it must."""
        arrivals = self._arrivals
        if len(arrivals) >= self._capacity and not self._make_room(now):
            return
        self.received += 1
        arrivals.append(now)
        self._pcm += payload

    def _make_room(self, now: float) -> bool:
        """Applies the policy to a full buffer; whether there is room now."""
        if self._policy is OverflowPolicy.CLOSE:
            raise BufferOverflowError
        self.dropped += 1
        if self._policy is OverflowPolicy.DROP_NEWEST:
            self.received += 1
            self._lost_after = _extended(self._lost_after, self.received, now)
            return False
        oldest_seq = self.received - len(self._arrivals) + 1
        self._lost_before = _extended(self._lost_before, oldest_seq, self._arrivals.pop(0))
        # Cheap: a bytearray forgets its head without moving its tail.
        del self._pcm[:FRAME_BYTES]
        return True

    @property
    def frames(self) -> int:
        """Frames that wait."""
        return len(self._arrivals)

    @property
    def is_waiting(self) -> bool:
        """Whether any frames are to be named: such as wait, or such as were dropped."""
        return bool(self._arrivals) or self._lost_before is not None

    def take_lost(self) -> Span | None:
        """The dropped frames that are older than all that wait."""
        lost, self._lost_before = self._lost_before, None
        return lost

    def take(self) -> tuple[Span, bytearray]:
        """The whole buffer, which must not be empty, and nothing older may be unnamed."""
        assert self._lost_before is None
        arrivals, pcm = self._arrivals, self._pcm
        self._arrivals, self._pcm = array("d"), bytearray()
        self._lost_before, self._lost_after = self._lost_after, None
        # What drop_newest lost is newer than the buffer.
        newest_seq = self.received
        if self._lost_before is not None:
            newest_seq = self._lost_before.oldest_seq - 1
        return Span(newest_seq - len(arrivals) + 1, newest_seq, arrivals[0], arrivals[-1]), pcm


def _extended(span: Span | None, seq: int, at: float) -> Span:
    if span is None:
        return Span(seq, seq, at, at)
    return Span(span.oldest_seq, seq, span.oldest_at, at)
