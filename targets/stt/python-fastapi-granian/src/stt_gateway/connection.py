"""A session on its WebSocket: receives, ticks, asks, answers."""

import asyncio
import contextlib
import math
import random
from time import monotonic
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from . import messages
from .gateway import Gateway
from .inference import InferenceError
from .messages import FRAME_BYTES, Circumstances, Failure, FailureKind, Span
from .metrics import BUFFER_FRAMES, DEFERRED, ERRORS, FLUSH_LATENESS, INFERENCE, Counter, Gauge
from .session import Batch, Deferral, Offer, Session

_GOING_AWAY = 1001
_PROTOCOL_ERROR = 1002
_UNSUPPORTED_DATA = 1003
_MESSAGE_TOO_BIG = 1009
_TRY_AGAIN_LATER = 1013

_MESSAGE_BYTES_MAX = 65_536
# How long a close may take to be sent.
_CLOSE_TIMEOUT_S = 1.0

_OVERFLOW = Failure(FailureKind.OVERFLOW, "input buffer full, frames dropped")


class SessionEndError(Exception):
    """The session is over: to be closed with a code, or `None` when the client has gone."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Connection:
    """One client, from the accept to the close."""

    def __init__(self, websocket: WebSocket, gateway: Gateway) -> None:
        self._websocket = websocket
        self._gateway = gateway
        self._settings = gateway.settings
        self._board = gateway.board
        self._outbox: asyncio.Queue[str] = asyncio.Queue()
        # Messages that the server has not taken yet: those in the outbox, and the one that is being sent.
        self._unsent = 0
        self._ticker: asyncio.Task[None] | None = None
        self._request: asyncio.Task[None] | None = None
        self._is_over = False

    async def run(self) -> None:
        """Serves the client until the session is over."""
        code: int | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(tasks))
                tasks.create_task(self._send())
                tasks.create_task(self._drain())
        except* SessionEndError as ends:
            code = next((end.code for end in ends.exceptions if isinstance(end, SessionEndError)), None)
        finally:
            self._is_over = True
        if code is not None:
            # The client may have gone meanwhile, or reads nothing. Granian says so with a RuntimeError.
            with contextlib.suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await self._websocket.close(code)

    # What comes from the client

    async def _receive(self, tasks: asyncio.TaskGroup) -> None:
        session = await self._started()
        self._ticker = tasks.create_task(self._tick(session))
        while True:
            message = await self._next_message()
            pcm = message.get("bytes")
            if pcm is None:
                raise SessionEndError(_PROTOCOL_ERROR)
            if len(pcm) != FRAME_BYTES:
                raise SessionEndError(_UNSUPPORTED_DATA if len(pcm) <= _MESSAGE_BYTES_MAX else _MESSAGE_TOO_BIG)
            offer = session.offer(pcm, monotonic())
            if offer is Offer.REFUSED:
                raise SessionEndError(_TRY_AGAIN_LATER)
            self._board.add(Counter.FRAMES)
            if offer is Offer.DROPPED:
                self._board.add(Counter.DROPPED)

    async def _started(self) -> Session:
        try:
            async with asyncio.timeout(self._settings.start_timeout_ms / 1000):
                message = await self._next_message()
        except TimeoutError:
            raise SessionEndError(_PROTOCOL_ERROR) from None
        text = message.get("text")
        if text is None or not messages.is_start(text):
            raise SessionEndError(_PROTOCOL_ERROR)
        settings = self._settings
        jitter_s = random.uniform(0, settings.flush_phase_jitter_ms) / 1000
        return Session(
            monotonic() + jitter_s, settings.flush_interval_ms / 1000, settings.max_buffer_frames, settings.overflow_policy
        )

    async def _next_message(self) -> Any:
        # Not receive_bytes(), because a text among the audio is a violation of its own.
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise SessionEndError(None)
        return message

    # The flush

    async def _tick(self, session: Session) -> None:
        while True:
            # Up to whole milliseconds, which is how exact uvloop's timers are: no tick comes early.
            delay_s = math.ceil((session.due - monotonic()) * 1000) / 1000
            await asyncio.sleep(max(0.0, delay_s))
            self._flush(session, monotonic())

    def _flush(self, session: Session, now: float) -> None:
        tick = session.tick(now, self._settings.outbox_messages - self._unsent)
        if tick.dropped is not None:
            self._report(session, tick.dropped, _OVERFLOW, tick.lateness_ms)
        deferred = tick.deferred
        if tick.is_ready:
            if self._board.take(Gauge.JOBS, self._settings.max_inflight_jobs):
                batch = session.flush(tick.lateness_ms)
                BUFFER_FRAMES.observe(self._board, batch.span.frames)
                FLUSH_LATENESS.observe(self._board, batch.lateness_ms / 1000)
                # It runs on if the client goes: a cancelled write would break the connection that other sessions share.
                self._request = self._gateway.spawn(self._ask(session, batch))
            else:
                deferred = Deferral.JOBS
        if deferred is not None:
            self._board.add(DEFERRED[deferred])

    async def _ask(self, session: Session, batch: Batch) -> None:
        sent_at = monotonic()
        failure: Failure | None = None
        try:
            answer = await self._gateway.inference.infer(batch.pcm)
        except InferenceError as error:
            failure = error.failure
        finally:
            self._board.give_back(Gauge.JOBS)
        INFERENCE.observe(self._board, monotonic() - sent_at)
        session.answered()
        if self._is_over:
            return
        if failure is not None:
            self._report(session, batch.span, failure, batch.lateness_ms)
            return
        self._board.add(Counter.PARTIALS)
        self._post(messages.partial(batch.span, answer, self._settings.cpu_passes, batch.lateness_ms))

    # What goes to the client

    def _report(self, session: Session, span: Span, failure: Failure, lateness_ms: float) -> None:
        self._board.add(ERRORS[failure.kind])
        around = Circumstances(monotonic(), lateness_ms, self._board.total(Gauge.JOBS), session.buffer_frames)
        self._post(messages.error(span, failure, around))

    def _post(self, text: str) -> None:
        self._unsent += 1
        self._outbox.put_nowait(text)

    async def _send(self) -> None:
        while True:
            text = await self._outbox.get()
            try:
                await self._websocket.send_text(text)
            except (WebSocketDisconnect, RuntimeError):
                raise SessionEndError(None) from None
            self._unsent -= 1
            self._outbox.task_done()

    async def _drain(self) -> None:
        """When the gateway ends, what is in flight is still answered, but nothing new is begun."""
        await self._gateway.draining.wait()
        if self._ticker is not None:
            self._ticker.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_timeout_ms / 1000):
                if self._request is not None:
                    await asyncio.wait([self._request])
                await self._outbox.join()
        raise SessionEndError(_GOING_AWAY)
