"""The metrics of the contract: where each number is on the board, and all of them as Prometheus text."""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import accumulate, count

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from . import board
from .board import Board
from .messages import FailureKind
from .session import Deferral

_MICROSECONDS = 1_000_000


class Gauge(IntEnum):
    """What is counted up and down; limits are limits of these."""

    SESSIONS = 0
    JOBS = 1


class Counter(IntEnum):
    """What is counted up."""

    SESSIONS = 2
    REJECTED = 3
    FRAMES = 4
    DROPPED = 5
    PARTIALS = 6


class Histogram:
    """A number for each bucket, one for what is above the last, and the sum."""

    def __init__(self, name: str, bounds: Iterable[float], unit: float, place: int) -> None:
        self.name = name
        self.bounds = tuple(bounds)
        # The sum is a whole number of 1 / unit.
        self.unit = unit
        self.place = place
        self.sum_place = place + len(self.bounds) + 1

    def observe(self, numbers: Board, value: float) -> None:
        numbers.add(self.place + bisect_left(self.bounds, value))
        numbers.add(self.sum_place, round(value * self.unit))


_places = count(len(Gauge) + len(Counter))
ERRORS = {kind: next(_places) for kind in FailureKind}
DEFERRED = {reason: next(_places) for reason in Deferral}
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5)
BUFFER_FRAMES = Histogram("stt_buffer_frames", (1, 2, 5, 10, 20, 50, 75, 100, 150, 200, 300, 500), 1, next(_places))
FLUSH_LATENESS = Histogram("stt_flush_lateness_seconds", _SECONDS, _MICROSECONDS, BUFFER_FRAMES.sum_place + 1)
INFERENCE = Histogram("stt_inference_seconds", _SECONDS, _MICROSECONDS, FLUSH_LATENESS.sum_place + 1)
_NUMBERS = INFERENCE.sum_place + 1

_GAUGES = {"stt_sessions": Gauge.SESSIONS, "stt_jobs_inflight": Gauge.JOBS}
_COUNTERS = {
    "stt_sessions_total": Counter.SESSIONS,
    "stt_sessions_rejected_total": Counter.REJECTED,
    "stt_frames_total": Counter.FRAMES,
    "stt_frames_dropped_total": Counter.DROPPED,
    "stt_partials_total": Counter.PARTIALS,
}


def create_board(workers: int) -> str:
    """Makes the shared file of a gateway; returns its path."""
    return board.create(workers, _NUMBERS)


def open_board() -> Board:
    """This worker's view of the shared file, or of its own where nobody made one."""
    path = os.environ.get(board.VARIABLE) or create_board(1)
    return Board(path, _NUMBERS, range(len(Gauge)))


class _BoardCollector(Collector):
    """prometheus_client's own values are kept per process, or in files that do not tell a gauge `stt_sessions` from a
    counter `stt_sessions_total`. So the board has the values, and the library renders them."""

    def __init__(self, numbers: Board) -> None:
        self._total = numbers.total

    def collect(self) -> Iterator[Metric]:
        for name, gauge in _GAUGES.items():
            yield GaugeMetricFamily(name, name, value=self._total(gauge))
        for name, counter in _COUNTERS.items():
            yield CounterMetricFamily(name, name, value=self._total(counter))
        errors = CounterMetricFamily("stt_errors_total", "stt_errors_total", labels=("stage", "kind"))
        for kind, place in ERRORS.items():
            errors.add_metric((kind.stage, kind.kind), self._total(place))
        yield errors
        deferred = CounterMetricFamily("stt_ticks_deferred_total", "stt_ticks_deferred_total", labels=("reason",))
        for reason, place in DEFERRED.items():
            deferred.add_metric((reason,), self._total(place))
        yield deferred
        for histogram in (BUFFER_FRAMES, FLUSH_LATENESS, INFERENCE):
            yield self._histogram(histogram)

    def _histogram(self, histogram: Histogram) -> Metric:
        counts = accumulate(self._total(place) for place in range(histogram.place, histogram.sum_place))
        bounds = (*(f"{bound:g}" for bound in histogram.bounds), "+Inf")
        sum_value = self._total(histogram.sum_place) / histogram.unit
        buckets = list(zip(bounds, counts, strict=True))
        return HistogramMetricFamily(histogram.name, histogram.name, buckets=buckets, sum_value=sum_value)


class Exposition:
    """The text of `/metrics`."""

    def __init__(self, numbers: Board) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_BoardCollector(numbers))

    def render(self) -> bytes:
        return generate_latest(self._registry)
