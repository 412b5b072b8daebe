"""A WebSocket connection over an asyncio transport: frames in and out, and a close whose code is not lost."""

import asyncio
from time import monotonic
from typing import Final

from .websocket import Reader, Violation, close_frame, pong_frame

# How long a socket is read empty after the close frame, and no session waits for it.
LINGER_S: Final = 1.0


class Channel(Reader, asyncio.Protocol):
    """The connection after its handshake. What a subclass adds is the session, and what it does with frames that must wait.

    The transport's high-water mark is 0, so its own buffer holds at most the one frame that the kernel took in part, or a
    pong and a close besides, and `is_write_paused` says that it does.
    """

    __slots__ = ("_is_closing", "_is_write_paused", "_linger", "_loop", "_pong", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._pong: bytes | None = None
        self._is_write_paused = False
        self._is_closing = False
        self._linger: asyncio.TimerHandle | None = None
        transport.set_write_buffer_limits(high=0)

    def ended(self) -> None:
        """The connection is closing or lost: called once, for the subclass to let go of what it holds."""

    def writable(self) -> None:
        """The kernel takes frames again."""

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

    def eof_received(self) -> bool:
        self._end()
        # The transport closes itself, once it has written what it holds.
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    def _end(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.ended()

    # Writing

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        if self._pong is not None:
            pong, self._pong = self._pong, None
            self._transport.write(pong)
        # A write may pause us again.
        if not self._is_write_paused:
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

    def close(self, code: int | None, linger_s: float = LINGER_S) -> None:
        """Sends a close, or answers one, and ends the connection when the peer has, or has had time to."""
        if self._is_closing:
            return
        self._end()
        self._pong = None
        if self._transport.is_closing():
            return
        self._transport.write(close_frame(code))
        self._transport.write_eof()
        self._linger = self._loop.call_later(linger_s, self._transport.abort)
