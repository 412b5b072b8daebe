"""This gateway's metrics."""

from gateway_common.ledger import Book
from gateway_common.metrics import family

from .shared import ERRORS_AT, REFUSED_AT, REQUESTS_AT, SPEAKS_AT, Counter, Gauge


def render(book: Book) -> str:
    """All metrics, over all workers."""

    def counters(name: str, places: dict[str, int]) -> list[str]:
        return family(name, "counter", ((labels, book.total(place)) for labels, place in places.items()))

    refusals = {f'cause="{refusal.cause}"': place for refusal, place in REFUSED_AT.items()}
    audio = {'direction="in"': Counter.AUDIO_IN_BYTES, 'direction="out"': Counter.AUDIO_OUT_BYTES}
    results = {'final="true"': Counter.FINAL_RESULTS, 'final="false"': Counter.INTERIM_RESULTS}
    speaks = {f'outcome="{outcome.value}"': place for outcome, place in SPEAKS_AT.items()}
    errors = {f'kind="{kind.value}"': place for kind, place in ERRORS_AT.items()}
    requests = {
        f'provider="{provider.value}",outcome="{outcome.value}"': place for (provider, outcome), place in REQUESTS_AT.items()
    }
    lines = [
        *family("voice_sessions", "gauge", [("", book.total(Gauge.SESSIONS))]),
        *counters("voice_sessions_total", {"": Counter.SESSIONS}),
        *counters("voice_refused_total", refusals),
        *counters("voice_audio_bytes_total", dict(audio)),
        *counters("voice_results_total", dict(results)),
        *counters("voice_speaks_total", speaks),
        *counters("voice_errors_total", errors),
        *counters("voice_requests_total", requests),
    ]
    return "\n".join(lines) + "\n"
