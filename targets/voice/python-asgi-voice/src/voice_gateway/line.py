"""A caller's connection: what is written in which order, and what happens when the caller does not read."""

import asyncio
import math
from time import monotonic
from typing import Final

from gateway_common.channel import LINGER_S, Channel
from gateway_common.websocket import binary_frame, text_frame

from .outbox import Frame, Outbox, Reply

_POLICY: Final = 1008
# A socket that takes nothing for this long is closed.
_STUCK_S: Final = 10.0
_STUCK_LOOK_S: Final = 0.5
# A caller that was stuck may still come back to read why it was closed.
_STUCK_LINGER_S: Final = 10.0
# Beyond the limit of reply audio, for all other messages: who lets so many wait does not read them.
_OTHERS_BYTES_MAX: Final = 1 << 20
# Larger pieces of audio are cut, so that a `clear` finds no long frame half written.
_FRAME_BYTES_MAX: Final = 9600


class Line(Channel):
    """The connection of a session, with its outbox."""

    __slots__ = ("_out_bytes_max", "_outbox", "_progress_at", "_stuck_timer", "_unwritten_bytes", "heard_at")

    # Beyond these a message is refused from its header.
    TEXT_BYTES_MAX = 1 << 20
    BINARY_BYTES_MAX = 10 << 20

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, out_bytes_max: int) -> None:
        super().__init__(transport, loop)
        self._out_bytes_max = out_bytes_max
        self._outbox = Outbox(out_bytes_max)
        # When the caller last sent anything.
        self.heard_at = monotonic()
        # When the kernel last took anything, what it has not taken of the last frame, and the timer that looks at them.
        self._progress_at = math.inf
        self._unwritten_bytes = 0
        self._stuck_timer: asyncio.TimerHandle | None = None

    def wrote_audio(self, pcm_bytes: int) -> None:
        """Reply audio was handed to the kernel."""

    def wrote_end(self, reply: Reply) -> None:
        """The last word of a reply was handed to the kernel."""

    def all_written(self) -> None:
        """The outbox is empty again."""

    @property
    def is_all_written(self) -> bool:
        return not self._outbox and not self._is_write_paused

    def data_received(self, data: bytes) -> None:
        self.heard_at = monotonic()
        super().data_received(data)

    # What is written

    def send(self, message: str) -> None:
        """A message that waits as long as it must."""
        self._put(Frame(text_frame(message)))

    def send_result(self, message: str) -> None:
        """A message that is dropped if it has waited for half a second."""
        if self._may_write:
            self._transport.write(text_frame(message))
        elif not self._is_closing:
            self._outbox.push_result(text_frame(message))

    def audio(self, reply: Reply, pcm: bytes) -> None:
        """Audio of a reply; what has no room is dropped."""
        if self._is_closing:
            return
        if self._may_write and not reply.is_dropping:
            reply.position += len(pcm)
            kept = pcm
        else:
            kept = self._outbox.squeeze(reply, pcm)
        for start in range(0, len(kept), _FRAME_BYTES_MAX):
            piece = kept[start : start + _FRAME_BYTES_MAX]
            self._put(Frame(binary_frame(piece), reply, len(piece)))

    def finish(self, reply: Reply, message: str) -> None:
        """The last word of a reply, behind its audio."""
        self._put(Frame(text_frame(message), reply, ends_reply=True))

    def drop(self, reply: Reply) -> None:
        """Nothing more of this reply is written."""
        self._outbox.drop(reply)

    @property
    def _may_write(self) -> bool:
        return not self._is_write_paused and not self._is_closing and not self._outbox

    def _put(self, frame: Frame) -> None:
        if self._may_write:
            self._write(frame)
        elif not self._is_closing:
            self._outbox.push(frame)
            if self._outbox.size_bytes > self._out_bytes_max + _OTHERS_BYTES_MAX:
                self.close(_POLICY)

    def _write(self, frame: Frame) -> None:
        self._transport.write(frame.data)
        if frame.audio_bytes:
            self.wrote_audio(frame.audio_bytes)
        if frame.ends_reply and frame.reply is not None:
            self.wrote_end(frame.reply)

    def writable(self) -> None:
        # A write may pause us again.
        while self._outbox and not self._is_write_paused:
            self._write(self._outbox.pop())
        if self.is_all_written:
            self.all_written()

    # A caller that does not read

    def pause_writing(self) -> None:
        super().pause_writing()
        self._progress_at = monotonic()
        self._unwritten_bytes = self._transport.get_write_buffer_size()
        if self._stuck_timer is None:
            self._stuck_timer = self._loop.call_later(_STUCK_LOOK_S, self._look_if_stuck)

    def _look_if_stuck(self) -> None:
        self._stuck_timer = None
        if not self._is_write_paused or self._is_closing:
            return
        now, unwritten_bytes = monotonic(), self._transport.get_write_buffer_size()
        if unwritten_bytes != self._unwritten_bytes:
            self._progress_at, self._unwritten_bytes = now, unwritten_bytes
        if now - self._progress_at >= _STUCK_S:
            self.close(_POLICY, _STUCK_LINGER_S)
        else:
            self._stuck_timer = self._loop.call_later(_STUCK_LOOK_S, self._look_if_stuck)

    # The end

    def close(self, code: int | None, linger_s: float = LINGER_S) -> None:
        super().close(code, linger_s)
        self._outbox.clear()

    def ended(self) -> None:
        self._outbox.clear()
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
            self._stuck_timer = None
