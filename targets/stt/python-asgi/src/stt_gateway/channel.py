"""A WebSocket connection over an asyncio transport: frames in, an outbox, and a close whose code is not lost."""

import asyncio
from collections import deque
from time import monotonic
from typing import Final

from .session.audio import BufferOverflowError
from .websocket import Reader, Violation, close_frame, pong_frame, text_frame

_OVERFLOW: Final = 1013

# How long a socket is read empty after the close frame, and no session waits for it.
_LINGER_S: Final = 1.0


def _ignore(_payload: bytes, _now: float) -> None:
    """Audio behind a close."""


class Channel(Reader, asyncio.Protocol):
    """The connection after its handshake. What a subclass adds is the session.

    The transport's own buffer counts as one occupied place of the outbox: its high-water mark is 0, so it holds at most
    the one message that the kernel took in part, or a pong and a close besides, and `pause_writing` says that it does.
    """

    __slots__ = (
        "_is_closing",
        "_is_write_paused",
        "_linger",
        "_loop",
        "_outbox",
        "_pace_s",
        "_pong",
        "_resume",
        "_transport",
    )

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, pace_s: float) -> None:
        super().__init__(self.audio_too_early)
        self._transport = transport
        self._loop = loop
        self._pace_s = pace_s
        self._outbox: deque[bytes] = deque()
        self._pong: bytes | None = None
        self._is_write_paused = False
        self._is_closing = False
        self._linger: asyncio.TimerHandle | None = None
        self._resume: asyncio.TimerHandle | None = None
        transport.set_write_buffer_limits(high=0)

    def audio_too_early(self, _payload: bytes, _now: float) -> None:
        """Audio before the session takes it."""
        raise Violation(1002, "audio before the start")

    def ended(self) -> None:
        """The connection is closing or lost: called once, for the subclass to let go of what it holds."""

    def writable(self) -> None:
        """The outbox is empty again."""

    # Reading

    def data_received(self, data: bytes) -> None:
        # After a close what comes is read and thrown away: a socket closed with unread data sends a reset, and then the
        # peer's kernel drops the close code that it has received already.
        if self._is_closing:
            return
        try:
            self.feed(data, monotonic())
        except Violation as violation:
            self.close(violation.code)
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

    def eof_received(self) -> bool:
        self._end()
        # The transport closes itself, once it has written what it holds.
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._cancel_timers()

    def _cancel_timers(self) -> None:
        for timer in (self._linger, self._resume):
            if timer is not None:
                timer.cancel()
        self._linger = self._resume = None

    def _end(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            # Also breaks the cycle through a bound method of our own.
            self.on_audio = _ignore
            self.ended()

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

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        if self._pong is not None:
            pong, self._pong = self._pong, None
            self._transport.write(pong)
        # A write may pause us again.
        while self._outbox and not self._is_write_paused:
            self._transport.write(self._outbox.popleft())
        if not self.unsent:
            self.writable()

    def on_ping(self, payload: bytes) -> None:
        if self._is_closing:
            return
        if self._is_write_paused:
            # RFC 6455, 5.5.3: of several pings the last may be answered alone. So pings cannot fill our memory.
            self._pong = pong_frame(payload)
        else:
            self._transport.write(pong_frame(payload))

    # Closing

    def on_close(self, code: int | None) -> None:
        self.close(code)

    def close(self, code: int | None, linger_s: float = _LINGER_S) -> None:
        """Sends a close, or answers one, and ends the connection when the peer has, or has had time to."""
        if self._is_closing:
            return
        self.read_now()
        self._end()
        self._outbox.clear()
        self._pong = None
        if self._transport.is_closing():
            return
        self._transport.write(close_frame(code))
        self._transport.write_eof()
        self._linger = self._loop.call_later(linger_s, self._transport.abort)
