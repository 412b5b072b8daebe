"""The place for a session's request: empty or taken, and never two.

A session has one attribute for a request. It holds an `Idle` or an `InFlight`; only an `Idle` has `begin`, and what it
returns is an `InFlight`, which has none. So code that would start a second request does not type-check (`mypy --strict` is
part of the tests), and has no place to keep it.
"""

from typing import final

from .audio import Span


@final
class InFlight:
    """A request that has not come back, with the description of its batch."""

    __slots__ = ("_pcm", "flush_lateness_ms", "sent_at", "span")

    def __init__(self, span: Span, pcm: bytearray, sent_at: float, flush_lateness_ms: float) -> None:
        self.span = span
        self._pcm = pcm
        self.sent_at = sent_at
        self.flush_lateness_ms = flush_lateness_ms

    def take_pcm(self) -> bytearray:
        """The batch's audio, to be sent; it is not kept here while the request is under way."""
        pcm, self._pcm = self._pcm, bytearray()
        return pcm

    def land(self) -> "Idle":
        """The request has come back."""
        return IDLE


@final
class Idle:
    """No request in flight: the only thing from which one can be begun."""

    __slots__ = ()

    def begin(self, batch: tuple[Span, bytearray], sent_at: float, flush_lateness_ms: float) -> InFlight:
        """A request for a batch."""
        span, pcm = batch
        return InFlight(span, pcm, sent_at, flush_lateness_ms)


IDLE = Idle()

Slot = Idle | InFlight
