"""A caller's audio on its way to the provider: what waits, and when it was sent."""

from collections import deque
from time import monotonic
from typing import Final

_BYTES_PER_MS: Final = 32
# 20 ms: audio is dropped up to a multiple of it, counted from the caller's first byte.
BLOCK_BYTES: Final = 640
# What one message to the provider carries at most.
_PIECE_BYTES_MAX: Final = 64 * 1024


class WaitingAudio:
    """Audio that the provider does not have yet: the newest, if there is too much."""

    __slots__ = ("_bytes", "_dropped_bytes", "_messages", "_start")

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        # How much of the caller's audio came before the first byte here.
        self._start = 0
        self._dropped_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._messages)

    def push(self, pcm: bytes, bytes_max: int) -> None:
        """More audio came."""
        if pcm:
            self._messages.append(pcm)
            self._bytes += len(pcm)
            if self._bytes > bytes_max:
                self.trim(bytes_max)

    def trim(self, bytes_max: int) -> None:
        """Drops the oldest audio beyond so many bytes, in whole blocks."""
        excess = self._bytes - bytes_max
        if excess <= 0:
            return
        start = min(-(-(self._start + excess) // BLOCK_BYTES) * BLOCK_BYTES, self._start + self._bytes)
        self._dropped_bytes += start - self._start
        self._skip(start - self._start)

    def peek(self) -> tuple[int, bytes]:
        """The oldest audio, as much as one message may carry, and where it begins in all that the caller said."""
        return self._start, self._messages[0][:_PIECE_BYTES_MAX]

    def sent(self, start: int, piece: bytes) -> None:
        """The provider has what `peek` gave; some of it may have been dropped meanwhile."""
        self._skip(max(0, start + len(piece) - self._start))

    def take_dropped_ms(self) -> int:
        """Milliseconds that were dropped since this was last asked."""
        dropped, self._dropped_bytes = self._dropped_bytes, 0
        return dropped // _BYTES_PER_MS

    def _skip(self, size: int) -> None:
        self._start += size
        self._bytes -= size
        while size:
            first = self._messages[0]
            if len(first) > size:
                self._messages[0] = first[size:]
                return
            self._messages.popleft()
            size -= len(first)


class SentTimes:
    """When which part of a connection's audio was sent, to tell how long the provider took for a result."""

    __slots__ = ("_bytes", "_sent")

    def __init__(self) -> None:
        self._bytes = 0
        # Where each message ended, and when it was sent. The oldest go where no result ever comes.
        self._sent: deque[tuple[int, float]] = deque(maxlen=1024)

    def add(self, size: int) -> None:
        self._bytes += size
        self._sent.append((self._bytes, monotonic()))

    def since_ms(self, second: float) -> float:
        """The time since the audio up to this second of the connection was sent; later audio counts as the newest."""
        sent = self._sent
        if not sent:
            return 0.0
        end = second * 1000 * _BYTES_PER_MS
        while len(sent) > 1 and sent[0][0] < end:
            sent.popleft()
        return (monotonic() - sent[0][1]) * 1000
