"""Speech to text: a caller's connection to the provider, which comes back when it is lost."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable
from time import monotonic
from typing import Final, Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from gateway_common.ledger import Book
from gateway_common.variables import BaseUrl

from .audio import SentTimes, WaitingAudio
from .config import Config
from .messages import ErrorKind, SttConfig, SttResult, parse_deepgram
from .providers import CLOSE_STREAM, KEEP_ALIVE, deepgram_listen
from .shared import REQUESTS_AT, Provider, RequestOutcome

_PING_EVERY_S: Final = 5.0
_KEEP_ALIVE_AFTER_S: Final = 5.0
_RECONNECT_DELAYS_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
# After those, so that a session outlives a longer outage.
_RETRY_EVERY_S: Final = 2.0
# A connection that has lived this long was one: if it is lost, the delays begin anew.
_STEADY_AFTER_S: Final = 1.0
# For the provider to answer a close.
_CLOSE_S: Final = 1.0
# While the connection is there, audio waits only for the loop, or for a provider that will not answer the next ping.
_BYTES_MAX: Final = 16 << 20

_FAILED_TO_CONNECT: Final = (OSError, WebSocketException, EOFError)


class Listener(Protocol):
    """Who is told."""

    def opened(self) -> None:
        """The connection is open."""

    def not_opened(self, message: str) -> None:
        """It could not be opened."""

    def heard(self, result: SttResult) -> None:
        """A result came."""

    def error(self, kind: ErrorKind, message: str, *, retryable: bool) -> None:
        """The caller should know."""


class Hearing:
    """The connection of one caller. `run` is its life; whoever cancels it ends it."""

    def __init__(self, config: Config, book: Book, base: BaseUrl, stt: SttConfig, listener: Listener) -> None:
        self._config = config
        self._book = book
        self._url, self._headers = deepgram_listen(base, stt, config.provider_key)
        self._listener = listener
        self._waiting = WaitingAudio()
        self._has_audio = asyncio.Event()
        self._kept_bytes_max = config.audio_buffer_ms * 32
        self._is_up = False
        # How many of the delays have been used up.
        self._tries = 0
        self._connection: ClientConnection | None = None
        self._sent_at = 0.0
        self._sent = SentTimes()

    def push(self, pcm: bytes) -> None:
        """The caller's audio."""
        self._waiting.push(pcm, _BYTES_MAX if self._is_up else self._kept_bytes_max)
        self._has_audio.set()

    async def run(self) -> None:
        """Connects, and connects again whenever the connection is lost; returns only if it never was there."""
        try:
            self._connection = await self._connect(self._config.ready_s)
        except _FAILED_TO_CONNECT as error:
            self._listener.not_opened(f"speech to text: {_cause(error)}")
            return
        self._listener.opened()
        while True:
            opened = monotonic()
            await self._serve(self._connection)
            self._count(RequestOutcome.FAILED)
            self._connection = None
            self._listener.error(ErrorKind.STT_LOST, "speech to text: the connection was lost", retryable=True)
            if monotonic() - opened >= _STEADY_AFTER_S:
                self._tries = 0
            self._connection = await self._come_back()
            self._tell_dropped()

    async def say_goodbye(self) -> None:
        """After the end of `run`: closes the connection as the provider wants it, if there is one."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._count(RequestOutcome.COMPLETE)
        try:
            async with asyncio.timeout(2 * _CLOSE_S):
                await connection.send(CLOSE_STREAM)
                await connection.close()
        except (ConnectionClosed, TimeoutError):
            connection.transport.abort()

    async def _come_back(self) -> ClientConnection:
        """Tries again, a few times soon; then the caller is told, and it tries on in silence."""
        for delay_s in _RECONNECT_DELAYS_S[self._tries :]:
            self._tries += 1
            if (connection := await self._try_after(delay_s)) is not None:
                return connection
        # However short the connection will be that comes now, its loss is a new one.
        self._tries = 0
        self._listener.error(ErrorKind.STT_FAILED, "speech to text: it did not come back yet", retryable=False)
        self._tell_dropped()
        while True:
            if (connection := await self._try_after(_RETRY_EVERY_S)) is not None:
                return connection

    async def _try_after(self, delay_s: float) -> ClientConnection | None:
        await asyncio.sleep(delay_s)
        with contextlib.suppress(*_FAILED_TO_CONNECT):
            return await self._connect(min(self._config.ready_s, self._config.stt_pong_s))
        return None

    def _tell_dropped(self) -> None:
        if dropped_ms := self._waiting.take_dropped_ms():
            self._listener.error(ErrorKind.AUDIO_DROPPED, f"{dropped_ms} ms of audio were dropped", retryable=False)

    async def _connect(self, timeout_s: float) -> ClientConnection:
        outcome = RequestOutcome.CANCELLED
        try:
            connection = await connect(
                self._url,
                additional_headers=self._headers,
                user_agent_header=None,
                compression=None,
                proxy=None,
                open_timeout=timeout_s,
                ping_interval=None,
                close_timeout=_CLOSE_S,
            )
        except _FAILED_TO_CONNECT:
            outcome = RequestOutcome.FAILED
            raise
        else:
            outcome = RequestOutcome.COMPLETE
            return connection
        finally:
            # A connection that was made counts when it ends.
            if outcome is not RequestOutcome.COMPLETE:
                self._count(outcome)

    async def _serve(self, connection: ClientConnection) -> None:
        """Sends and receives until the connection ends."""
        self._is_up = True
        self._sent_at = monotonic()
        self._sent = SentTimes()
        helpers = (asyncio.create_task(self._send(connection)), asyncio.create_task(self._keep(connection)))
        try:
            with contextlib.suppress(ConnectionClosed):
                async for message in connection:
                    self._took(message)
        finally:
            self._is_up = False
            self._waiting.trim(self._kept_bytes_max)
            for helper in helpers:
                helper.cancel()

    def _took(self, message: str | bytes) -> None:
        parsed = parse_deepgram(message)
        if parsed is not None:
            result, second = parsed
            self._listener.heard(result._replace(provider_ms=self._sent.since_ms(second)))

    async def _send(self, connection: ClientConnection) -> None:
        """Sends what waits, as it comes."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                while self._waiting:
                    start, piece = self._waiting.peek()
                    await connection.send(piece)
                    self._waiting.sent(start, piece)
                    self._sent.add(len(piece))
                    self._sent_at = monotonic()
                self._has_audio.clear()
                await self._has_audio.wait()

    async def _keep(self, connection: ClientConnection) -> None:
        """Pings, and keeps a silent connection alive; aborts one that does not answer."""
        pong: Awaitable[float] | None = None
        pong_by = math.inf
        ping_at = monotonic() + _PING_EVERY_S
        try:
            while True:
                now = monotonic()
                if isinstance(pong, asyncio.Future) and pong.done():
                    pong, pong_by = None, math.inf
                if now >= pong_by:
                    connection.transport.abort()
                    return
                async with asyncio.timeout(self._config.stt_pong_s):
                    if now >= self._sent_at + _KEEP_ALIVE_AFTER_S:
                        await connection.send(KEEP_ALIVE)
                        self._sent_at = now
                    if now >= ping_at:
                        ping_at = now + _PING_EVERY_S
                        if pong is None:
                            pong, pong_by = await connection.ping(), now + self._config.stt_pong_s
                await asyncio.sleep(max(0.0, min(ping_at, pong_by, self._sent_at + _KEEP_ALIVE_AFTER_S) - monotonic()))
        except TimeoutError:
            # It takes nothing any more.
            connection.transport.abort()
        except ConnectionClosed:
            return

    def _count(self, outcome: RequestOutcome) -> None:
        self._book.add(REQUESTS_AT[Provider.DEEPGRAM_STT, outcome])


def _cause(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "not open in time"
    return f"could not be opened ({error})"
