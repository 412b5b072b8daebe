"""The Prometheus text format, version 0.0.4."""

from .session import Deferral
from .session.messages import FailureKind
from .shared import DEFERRED_AT, ERRORS_AT, HISTOGRAMS, Book, Counter, Gauge, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_GAUGES = {"stt_sessions": Gauge.SESSIONS, "stt_jobs_inflight": Gauge.JOBS}
_COUNTERS = {
    "stt_sessions_total": Counter.SESSIONS,
    "stt_sessions_rejected_total": Counter.REJECTED,
    "stt_frames_total": Counter.FRAMES,
    "stt_frames_dropped_total": Counter.DROPPED,
    "stt_partials_total": Counter.PARTIALS,
}


def render(book: Book) -> str:
    """All metrics, over all workers."""
    lines: list[str] = []
    for name, gauge in _GAUGES.items():
        lines += (f"# TYPE {name} gauge", f"{name} {book.total(gauge)}")
    for name, counter in _COUNTERS.items():
        lines += (f"# TYPE {name} counter", f"{name} {book.total(counter)}")
    lines.append("# TYPE stt_errors_total counter")
    for kind in FailureKind:
        lines.append(f'stt_errors_total{{stage="{kind.stage}",kind="{kind.kind}"}} {book.total(ERRORS_AT[kind])}')
    lines.append("# TYPE stt_ticks_deferred_total counter")
    for reason in Deferral:
        lines.append(f'stt_ticks_deferred_total{{reason="{reason.value}"}} {book.total(DEFERRED_AT[reason])}')
    for histogram in HISTOGRAMS:
        lines += _histogram(book, histogram)
    return "\n".join(lines) + "\n"


def _histogram(book: Book, histogram: Histogram) -> list[str]:
    name, scale = histogram.name, histogram.scale
    lines = [f"# TYPE {name} histogram"]
    below = 0
    for place, bound in enumerate(histogram.bounds, histogram.buckets_at):
        below += book.total(place)
        lines.append(f'{name}_bucket{{le="{bound / scale:g}"}} {below}')
    below += book.total(histogram.sum_at - 1)
    lines += (
        f'{name}_bucket{{le="+Inf"}} {below}',
        f"{name}_sum {book.total(histogram.sum_at) / scale}",
        f"{name}_count {below}",
    )
    return lines
