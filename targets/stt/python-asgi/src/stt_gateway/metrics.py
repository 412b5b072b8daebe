"""This gateway's metrics."""

from gateway_common.ledger import Book
from gateway_common.metrics import family, histogram_family

from .session import Deferral
from .session.messages import FailureKind
from .shared import DEFERRED_AT, ERRORS_AT, HISTOGRAMS, Counter, Gauge

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
        lines += family(name, "gauge", [("", book.total(gauge))])
    for name, counter in _COUNTERS.items():
        lines += family(name, "counter", [("", book.total(counter))])
    errors = ((f'stage="{kind.stage}",kind="{kind.kind}"', book.total(ERRORS_AT[kind])) for kind in FailureKind)
    lines += family("stt_errors_total", "counter", errors)
    deferrals = ((f'reason="{reason.value}"', book.total(DEFERRED_AT[reason])) for reason in Deferral)
    lines += family("stt_ticks_deferred_total", "counter", deferrals)
    for histogram in HISTOGRAMS:
        lines += histogram_family(book, histogram)
    return "\n".join(lines) + "\n"
