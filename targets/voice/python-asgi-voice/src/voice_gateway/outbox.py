"""What waits for a caller that reads slowly. Without I/O."""

from collections import deque
from time import monotonic
from typing import Final, NamedTuple

# 20 ms: audio is dropped in such pieces, counted from the reply's first byte, so that what is left is in step.
BLOCK_BYTES: Final = 960
_RESULT_WAITS_S: Final = 0.5


class Reply:
    """A text that is to be spoken, or is being spoken."""

    __slots__ = ("dropped_bytes", "is_dropping", "may_be_interrupted", "number", "position", "text", "text_bytes")

    def __init__(self, number: int, text: str, may_be_interrupted: bool, text_bytes: int) -> None:
        self.number = number
        self.text = text
        self.text_bytes = text_bytes
        self.may_be_interrupted = may_be_interrupted
        # Bytes of its audio so far, dropped ones included.
        self.position = 0
        self.dropped_bytes = 0
        self.is_dropping = False


class Frame(NamedTuple):
    """A frame that waits; those of a reply are dropped with it, and with the last of them it ends."""

    data: bytes
    reply: Reply | None = None
    audio_bytes: int = 0
    ends_reply: bool = False


class Outbox:
    """Frames in their order. Reply audio has a limit; beyond it results wait aside, and not for long."""

    __slots__ = ("_bytes", "_bytes_max", "_frames", "_results")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        # Until when a result may wait for room, and its frame.
        self._results: deque[tuple[float, bytes]] = deque()

    def __bool__(self) -> bool:
        return bool(self._frames)

    @property
    def size_bytes(self) -> int:
        """What waits."""
        return self._bytes

    def push(self, frame: Frame) -> None:
        """A frame that must wait, however long."""
        self._frames.append(frame)
        self._bytes += len(frame.data)

    def push_result(self, data: bytes) -> None:
        """A result's frame."""
        if self._bytes < self._bytes_max and not self._results:
            self.push(Frame(data))
            return
        self._forget_results()
        self._results.append((monotonic() + _RESULT_WAITS_S, data))

    def pop(self) -> Frame:
        """The next frame."""
        frame = self._frames.popleft()
        self._bytes -= len(frame.data)
        if self._results and self._bytes < self._bytes_max:
            self._forget_results()
            while self._results and self._bytes < self._bytes_max:
                self.push(Frame(self._results.popleft()[1]))
        return frame

    def drop(self, reply: Reply) -> None:
        """Nothing more of this reply."""
        kept = deque(frame for frame in self._frames if frame.reply is not reply)
        if len(kept) < len(self._frames):
            self._frames = kept
            self._bytes = sum(len(frame.data) for frame in kept)

    def clear(self) -> None:
        self._frames.clear()
        self._results.clear()
        self._bytes = 0

    def squeeze(self, reply: Reply, pcm: bytes) -> bytes:
        """What is left of a reply's audio when what has no room is dropped."""
        room = self._bytes_max - self._bytes
        kept = []
        at = 0
        while at < len(pcm):
            in_block = reply.position % BLOCK_BYTES
            if in_block == 0:
                reply.is_dropping = room < BLOCK_BYTES
            piece = pcm[at : at + BLOCK_BYTES - in_block]
            if reply.is_dropping:
                reply.dropped_bytes += len(piece)
            else:
                kept.append(piece)
                room -= len(piece)
            reply.position += len(piece)
            at += len(piece)
        return b"".join(kept)

    def _forget_results(self) -> None:
        now = monotonic()
        while self._results and self._results[0][0] < now:
            self._results.popleft()
