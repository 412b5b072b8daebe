"""What the workers of this gateway share: where each of its numbers is in a block of the ledger."""

from enum import IntEnum
from itertools import count
from typing import Final

from gateway_common import ledger
from gateway_common.ledger import Histogram

from .session import Deferral
from .session.messages import FailureKind

_MICROSECONDS: Final = 1_000_000


class Gauge(IntEnum):
    """Gauges, which are also what limits count. Their values index a block."""

    SESSIONS = 0
    JOBS = 1


class Counter(IntEnum):
    """Counters without labels."""

    SESSIONS = 2
    REJECTED = 3
    FRAMES = 4
    DROPPED = 5
    PARTIALS = 6


_place = count(len(Gauge) + len(Counter))
ERRORS_AT: Final = {kind: next(_place) for kind in FailureKind}
DEFERRED_AT: Final = {reason: next(_place) for reason in Deferral}
_next = next(_place)
BUFFER_FRAMES: Final = Histogram(
    "stt_buffer_frames", (1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500), 1, _next
)
FLUSH_LATENESS: Final = Histogram(
    "stt_flush_lateness_seconds",
    (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000, 500_000, 1_000_000),
    _MICROSECONDS,
    BUFFER_FRAMES.sum_at + 1,
)
INFERENCE: Final = Histogram(
    "stt_inference_seconds",
    (
        *(10_000, 25_000, 50_000, 75_000, 100_000, 125_000, 150_000, 200_000, 300_000, 500_000),
        *(750_000, 1_000_000, 2_500_000, 5_000_000),
    ),
    _MICROSECONDS,
    FLUSH_LATENESS.sum_at + 1,
)
HISTOGRAMS: Final = (BUFFER_FRAMES, FLUSH_LATENESS, INFERENCE)


class Ledger(ledger.Ledger):
    """The ledger with room for these numbers."""

    def __init__(self, workers: int) -> None:
        super().__init__("stt-gateway", workers, numbers=INFERENCE.sum_at + 1, gauges=len(Gauge))
