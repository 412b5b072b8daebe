"""A session on its connection: drives the pure session by the event loop's clock."""

import asyncio
import math
from functools import partial
from random import random
from time import monotonic
from typing import TYPE_CHECKING, Final

from gateway_common.websocket import Violation

from .channel import PacedChannel
from .inference import Outcome, Request
from .session import Deferral, Session
from .session.messages import FailureKind, Inference, is_start
from .shared import BUFFER_FRAMES, DEFERRED_AT, ERRORS_AT, FLUSH_LATENESS, INFERENCE, Counter, Gauge

if TYPE_CHECKING:
    from .gateway import Service
    from .session.slot import InFlight

_GOING_AWAY: Final = 1001

# While the gateway ends, nobody has a second to wait.
_DRAIN_LINGER_S: Final = 0.25


class Conversation(PacedChannel):
    """One session, from its upgrade to its end. It is the `World` of its `Session`."""

    __slots__ = (
        "_frames_counted",
        "_frames_dropped_counted",
        "_gateway",
        "_is_draining",
        "_request",
        "_session",
        "_timer",
    )

    def __init__(self, gateway: "Service", transport: asyncio.Transport) -> None:
        super().__init__(transport, gateway.loop, gateway.config.read_pace_s)
        self._gateway = gateway
        self._session: Session | None = None
        self._request: Request | None = None
        self._is_draining = False
        self._frames_counted = 0
        self._frames_dropped_counted = 0
        # One timer: until the start it is that of the time-out, then that of the next tick, at the end that of the drain.
        self._timer = gateway.loop.call_later(gateway.config.start_timeout_s, self._start_timed_out)
        gateway.connections.add(self)

    # What comes from the client

    def on_text(self, text: str, now: float) -> None:
        if self._session is not None or self._is_draining or not is_start(text):
            raise Violation(1002, "not the start message, or not the first")
        config = self._gateway.config
        session = self._session = Session(self._gateway.rules, now, random() * config.flush_phase_jitter_s)
        self.on_audio = session.audio.push
        self._timer.cancel()
        self._arm(session, now)

    def on_odd_size(self) -> None:
        raise Violation(1002 if self._session is None else 1003, "a binary message that is not one frame")

    def _start_timed_out(self) -> None:
        self.close(1002)

    # Ticks and answers

    def _arm(self, session: Session, now: float) -> None:
        # Up to whole milliseconds, which is how exact uvloop's timers are: no tick comes early.
        delay_s = math.ceil((session.due - now) * 1000) / 1000
        self._timer = self._gateway.loop.call_later(max(0.0, delay_s), self._tick, session)

    def _tick(self, session: Session) -> None:
        if self.read_now():
            # Two turns of the loop later the socket has been read, and the flush sees what has arrived.
            self._loop.call_soon(self._loop.call_soon, self._flush, session)
        else:
            self._flush(session)

    def _flush(self, session: Session) -> None:
        if self._is_closing or self._is_draining:
            return
        now = monotonic()
        flight = session.tick(now, self.unsent, self)
        if flight is not None:
            book = self._gateway.book
            book.observe(BUFFER_FRAMES, flight.span.frames)
            book.observe_seconds(FLUSH_LATENESS, flight.flush_lateness_ms / 1000)
            self._request = self._gateway.inference.post(flight.take_pcm(), partial(self._answered, session, flight))
        self._count_frames(session)
        self._arm(session, now)

    def _answered(self, session: Session, flight: "InFlight", outcome: Outcome) -> None:
        now = monotonic()
        self._request = None
        book = self._gateway.book
        book.give_back(Gauge.JOBS)
        book.observe_seconds(INFERENCE, now - flight.sent_at)
        session.answer(flight, outcome, now, self)
        if isinstance(outcome, Inference):
            book.add(Counter.PARTIALS)
        self._close_if_drained()

    def _count_frames(self, session: Session) -> None:
        """Enters in the metrics what has come since the last time: once per flush, not once per frame."""
        book, audio = self._gateway.book, session.audio
        book.add(Counter.FRAMES, audio.received - self._frames_counted)
        book.add(Counter.DROPPED, audio.dropped - self._frames_dropped_counted)
        self._frames_counted, self._frames_dropped_counted = audio.received, audio.dropped

    # What the session asks and tells; `send` is the channel's

    def reserve_job(self) -> bool:
        return self._gateway.book.take(Gauge.JOBS, self._gateway.config.jobs_max)

    def jobs_inflight(self) -> int:
        return self._gateway.book.total(Gauge.JOBS)

    def deferred(self, reason: Deferral) -> None:
        self._gateway.book.add(DEFERRED_AT[reason])

    def failed(self, kind: FailureKind) -> None:
        self._gateway.book.add(ERRORS_AT[kind])

    # The end

    def shutdown(self) -> None:
        """The gateway ends: only what is in flight is still answered, and that not for ever. (uvicorn calls it.)"""
        if self._is_closing or self._is_draining:
            return
        self._is_draining = True
        self._timer.cancel()
        self._timer = self._loop.call_later(self._gateway.config.drain_timeout_s, self._go_away)
        self._close_if_drained()

    def outbox_empty(self) -> None:
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._is_draining and self._request is None and not self.unsent:
            self._go_away()

    def _go_away(self) -> None:
        self.close(_GOING_AWAY, _DRAIN_LINGER_S)

    def ended(self) -> None:
        super().ended()
        book = self._gateway.book
        self._timer.cancel()
        if self._request is not None:
            self._request.cancel()
            self._request = None
            book.give_back(Gauge.JOBS)
        if self._session is not None:
            self._count_frames(self._session)
            self._session = None
        book.give_back(Gauge.SESSIONS)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._gateway.connections.discard(self)
