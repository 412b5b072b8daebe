"""A session's connection: an outbox of messages, and a socket that may rest between reads."""

import asyncio
from collections import deque
from typing import Final

from gateway_common.channel import LINGER_S, Channel
from gateway_common.websocket import Violation, text_frame

from .session.audio import BufferOverflowError
from .websocket import AudioReader

_OVERFLOW: Final = 1013


def _ignore(_payload: bytes, _now: float) -> None:
    """Audio behind a close."""


class PacedChannel(AudioReader, Channel):
    """The transport's own buffer counts as one occupied place of the outbox."""

    __slots__ = ("_outbox", "_pace_s", "_resume", "on_audio")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, pace_s: float) -> None:
        Channel.__init__(self, transport, loop)
        self.on_audio = self.audio_too_early
        self._pace_s = pace_s
        self._outbox: deque[bytes] = deque()
        self._resume: asyncio.TimerHandle | None = None

    def audio_too_early(self, _payload: bytes, _now: float) -> None:
        """Audio before the session takes it."""
        raise Violation(1002, "audio before the start")

    def outbox_empty(self) -> None:
        """The outbox is empty again."""

    # Reading

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except BufferOverflowError:
            self.close(_OVERFLOW)
        else:
            if self._pace_s:
                self._rest_until_paced()

    def _rest_until_paced(self) -> None:
        """Leaves the socket alone for a while, so that the next read takes many frames."""
        if self._resume is None and not self._is_closing:
            self._transport.pause_reading()
            self._resume = self._loop.call_later(self._pace_s, self.read_now)

    def read_now(self) -> bool:
        """Ends the rest, so that the loop's next turn reads what has arrived; whether there was one."""
        if self._resume is None:
            return False
        self._resume.cancel()
        self._resume = None
        self._transport.resume_reading()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._resume is not None:
            self._resume.cancel()
            self._resume = None

    def ended(self) -> None:
        # Also breaks the cycle through a bound method of our own.
        self.on_audio = _ignore

    # Writing

    @property
    def unsent(self) -> int:
        """Messages not wholly handed to the kernel."""
        return len(self._outbox) + self._is_write_paused

    def send(self, message: str) -> None:
        """Sends a text message, or keeps it in the outbox until the client takes it."""
        if self._is_write_paused:
            self._outbox.append(text_frame(message))
        elif not self._is_closing:
            self._transport.write(text_frame(message))

    def writable(self) -> None:
        # A write may pause us again.
        while self._outbox and not self._is_write_paused:
            self._transport.write(self._outbox.popleft())
        if not self.unsent:
            self.outbox_empty()

    def close(self, code: int | None, linger_s: float = LINGER_S) -> None:
        if self._is_closing:
            return
        self.read_now()
        super().close(code, linger_s)
        self._outbox.clear()
