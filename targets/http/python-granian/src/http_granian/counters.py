"""The count of requests over all workers, and its Prometheus text."""

from ctypes import c_uint64
from multiprocessing import RawArray, Value

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counters:
    """A cell per worker in shared memory. Only its owner writes to a cell, so counting takes no lock.

    Made before the workers are forked. Each takes a cell when it starts.
    """

    def __init__(self, workers: int) -> None:
        self._cells = RawArray(c_uint64, workers)
        self._taken = Value("I", 0)
        self._own = 0

    def take(self) -> None:
        """Takes the next cell for this process."""
        with self._taken.get_lock():
            self._own = self._taken.value
            self._taken.value += 1

    def count(self) -> None:
        """Counts a request of this process."""
        self._cells[self._own] += 1

    def render(self) -> str:
        """The sum over all workers."""
        return f"# TYPE http_requests_total counter\nhttp_requests_total {sum(self._cells)}\n"
