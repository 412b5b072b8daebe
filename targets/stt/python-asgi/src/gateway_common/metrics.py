"""The Prometheus text format, version 0.0.4."""

from collections.abc import Iterable
from typing import Final

from .ledger import Book, Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def family(name: str, kind: str, samples: Iterable[tuple[str, int]]) -> list[str]:
    """The lines of a gauge or a counter: its labels, without braces, and their values."""
    lines = [f"# TYPE {name} {kind}"]
    lines += (f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in samples)
    return lines


def histogram_family(book: Book, histogram: Histogram) -> list[str]:
    """The lines of a histogram."""
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
