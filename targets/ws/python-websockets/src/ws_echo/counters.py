"""Counters that all workers share, and their Prometheus text.

One anonymous file in memory has a row of counters per worker. Only its owner writes to a row, so counting takes no lock.
"""

import mmap
from enum import IntEnum
from typing import TypeAlias

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_CELL_BYTES = 8


class Counter(IntEnum):
    """The places of a row."""

    OPEN = 0
    ACCEPTED = 1
    REFUSED = 2
    RECEIVED = 3
    RECEIVED_BYTES = 4
    SENT = 5
    DROPPED = 6


_METRICS = {
    Counter.OPEN: ("ws_connections_open", "gauge"),
    Counter.ACCEPTED: ("ws_connections_accepted_total", "counter"),
    Counter.REFUSED: ("ws_connections_refused_total", "counter"),
    Counter.RECEIVED: ("ws_messages_received_total", "counter"),
    Counter.RECEIVED_BYTES: ("ws_bytes_received_total", "counter"),
    Counter.SENT: ("ws_messages_sent_total", "counter"),
    Counter.DROPPED: ("ws_messages_dropped_total", "counter"),
}

# Quoted: before Python 3.14 it cannot be subscripted at run time.
Row: TypeAlias = "memoryview[int]"


class Board:
    """The rows of all workers. Made before the workers are forked."""

    def __init__(self, workers: int) -> None:
        self._cells: Row = memoryview(mmap.mmap(-1, workers * len(Counter) * _CELL_BYTES)).cast("Q")

    def row(self, worker: int) -> Row:
        """The row of one worker."""
        begin = worker * len(Counter)
        return self._cells[begin : begin + len(Counter)]

    def total(self, counter: Counter) -> int:
        """One counter over all workers."""
        return sum(self._cells[counter :: len(Counter)])

    def forget_open(self, worker: int) -> None:
        """The connections of a worker that has died are gone."""
        self.row(worker)[Counter.OPEN] = 0

    def render(self) -> str:
        """All metrics."""
        lines: list[str] = []
        for counter, (name, kind) in _METRICS.items():
            lines += (f"# TYPE {name} {kind}", f"{name} {self.total(counter)}")
        return "\n".join(lines) + "\n"
