"""A session without I/O: frames, times and answers go in, requests and messages come out.

It has no clock, no socket and no event loop, so every rule of the contract is tested with a simulated clock. What connects
it to the world is `conversation`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from . import messages
from .audio import AudioBuffer, OverflowPolicy
from .messages import ErrorContext, Failure, FailureKind, Inference
from .schedule import Schedule
from .slot import IDLE, Idle, InFlight, Slot

OVERFLOW = Failure(FailureKind.OVERFLOW, "input buffer full, frames dropped")


class Deferral(Enum):
    """Why a tick left its audio waiting."""

    IN_FLIGHT = "inflight"
    JOBS = "jobs"
    OUTBOX = "outbox"


@dataclass(frozen=True, slots=True)
class Rules:
    """The configuration that a session needs."""

    flush_interval_s: float
    buffer_frames_max: int
    overflow_policy: OverflowPolicy
    outbox_messages_max: int
    cpu_passes: int


class World(Protocol):
    """What a session asks of, and tells, its surroundings."""

    def send(self, message: str) -> None:
        """A message for the client."""

    def reserve_job(self) -> bool:
        """Takes one of the gateway's jobs, unless it is at its cap."""

    def jobs_inflight(self) -> int:
        """Requests in flight in the whole gateway."""

    def deferred(self, reason: Deferral) -> None:
        """A tick left its audio waiting."""

    def failed(self, kind: FailureKind) -> None:
        """An `error` was sent."""


class Session:
    """One started session.

    `audio` takes frames directly, for that happens fifty times a second. All else happens about once a second: `tick` at
    `due`, and `answer` for each request that `tick` returned.
    """

    __slots__ = ("_rules", "_schedule", "_slot", "audio")

    def __init__(self, rules: Rules, start: float, jitter_s: float) -> None:
        self._rules = rules
        self._schedule = Schedule(start + jitter_s, rules.flush_interval_s)
        self._slot: Slot = IDLE
        self.audio = AudioBuffer(rules.overflow_policy, rules.buffer_frames_max)

    @property
    def due(self) -> float:
        """When `tick` is due."""
        return self._schedule.due

    @property
    def is_in_flight(self) -> bool:
        """Whether a request has not come back."""
        return isinstance(self._slot, InFlight)

    def tick(self, now: float, unsent: int, world: World) -> InFlight | None:
        """A tick: names dropped frames, then makes one request of the whole buffer, unless something is in the way.

        `unsent` messages have not left yet. The request that is returned, if any, must be sent.
        """
        lateness_ms = max(0.0, now - self._schedule.take(now)) * 1000
        audio, rules = self.audio, self._rules
        if not audio.is_waiting:
            return None
        slot = self._slot
        if not isinstance(slot, Idle):
            world.deferred(Deferral.IN_FLIGHT)
            return None
        if unsent >= rules.outbox_messages_max:
            world.deferred(Deferral.OUTBOX)
            return None
        # Older than the buffer and newer than the last batch, so this is their place in the order.
        lost = audio.take_lost()
        if lost is not None:
            context = ErrorContext(now, lateness_ms, None, world.jobs_inflight(), audio.frames)
            world.send(messages.error(lost, OVERFLOW, context))
            world.failed(FailureKind.OVERFLOW)
            unsent += 1
        if not audio.frames:
            return None
        # The batch's own message needs a place, too.
        if unsent >= rules.outbox_messages_max:
            world.deferred(Deferral.OUTBOX)
            return None
        if not world.reserve_job():
            world.deferred(Deferral.JOBS)
            return None
        self._slot = flight = slot.begin(audio.take(), now, lateness_ms)
        return flight

    def answer(self, flight: InFlight, outcome: Inference | Failure, now: float, world: World) -> None:
        """The request has come back, or never will. An answer to any other request than the one in flight is ignored."""
        if self._slot is not flight:
            return
        self._slot = flight.land()
        rules = self._rules
        if isinstance(outcome, Inference):
            world.send(messages.partial(flight.span, outcome, rules.cpu_passes, flight.flush_lateness_ms))
            return
        elapsed_ms = (now - flight.sent_at) * 1000
        context = ErrorContext(now, flight.flush_lateness_ms, elapsed_ms, world.jobs_inflight(), self.audio.frames)
        world.send(messages.error(flight.span, outcome, context))
        world.failed(outcome.kind)
