"""What the workers of a gateway share: counters for `/metrics`, and the limits on sessions and on requests in flight.

One anonymous file holds a block of 64 bit numbers per worker, mapped by all. Only its own worker writes to a block, one
aligned number at a time, so counting needs no lock, in processes as in threads; whoever is asked for the metrics adds the
blocks up. A limit is exact all the same: where one is set, a worker takes the file's `flock` while it adds up the gauges and
raises its own. The kernel frees that lock if its holder dies, which no semaphore in shared memory would survive, and
each worker has opened the file for itself, so it holds between threads as well as between processes.
"""

import fcntl
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable
from enum import IntEnum
from itertools import count
from typing import Final

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


class Histogram:
    """A histogram over whole numbers (frames, or microseconds) with inclusive upper bounds."""

    def __init__(self, name: str, bounds: Iterable[int], scale: int, place: int) -> None:
        self.name = name
        self.bounds = tuple(bounds)
        self.scale = scale
        # One bucket for each bound, one for all above the last; then the sum.
        self.buckets_at = place
        self.sum_at = place + len(self.bounds) + 1


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

_NUMBERS: Final = INFERENCE.sum_at + 1
# Whole cache lines, so that no two workers write to the same one.
_BLOCK: Final = -(-_NUMBERS // 8) * 8


class Ledger:
    """The shared file, as the process that makes it sees it."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._fd = os.memfd_create("stt-gateway", os.MFD_CLOEXEC)
        os.ftruncate(self._fd, workers * _BLOCK * 8)

    def open(self, worker: int) -> "Book":
        """The file, for one worker; called in the worker, for the lock belongs to who opened it."""
        # Through /proc, for a duplicate of the descriptor would share its lock.
        return Book(os.open(f"/proc/self/fd/{self._fd}", os.O_RDWR | os.O_CLOEXEC), worker, self.workers)

    def forget_gauges(self, worker: int) -> None:
        """A worker has died: its sessions and requests are no more."""
        book = self.open(worker)
        for gauge in Gauge:
            book.add(gauge, -book.own(gauge))
        book.close()


class Book:
    """The shared file as one worker sees it."""

    __slots__ = ("_all", "_fd", "_map", "_own")

    def __init__(self, fd: int, worker: int, workers: int) -> None:
        self._fd = fd
        self._map = mmap.mmap(fd, workers * _BLOCK * 8)
        self._all = memoryview(self._map).cast("q")
        self._own = self._all[worker * _BLOCK : (worker + 1) * _BLOCK]

    def add(self, place: int, number: int = 1) -> None:
        """Adds to a number of this worker."""
        self._own[place] += number

    def own(self, place: int) -> int:
        """A number of this worker."""
        return self._own[place]

    def total(self, place: int) -> int:
        """A number over all workers."""
        return sum(self._all[place::_BLOCK])

    def take(self, gauge: Gauge, most: int) -> bool:
        """Raises a gauge, unless the whole gateway has `most` already; 0 means no limit."""
        if most == 0:
            self._own[gauge] += 1
            return True
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if self.total(gauge) >= most:
                return False
            self._own[gauge] += 1
            return True
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def give_back(self, gauge: Gauge) -> None:
        """Lowers a gauge. Needs no lock: at worst another worker refuses what a moment later it would not."""
        self._own[gauge] -= 1

    def observe(self, histogram: Histogram, number: int) -> None:
        """Enters a number in a histogram."""
        self._own[histogram.buckets_at + bisect_left(histogram.bounds, number)] += 1
        self._own[histogram.sum_at] += number

    def observe_seconds(self, histogram: Histogram, seconds: float) -> None:
        """Enters a time in a histogram of microseconds."""
        self.observe(histogram, round(seconds * _MICROSECONDS))

    def close(self) -> None:
        """Lets go of the file."""
        self._own.release()
        self._all.release()
        self._map.close()
        os.close(self._fd)
