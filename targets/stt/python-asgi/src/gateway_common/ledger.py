"""Numbers that the workers of a gateway share: counters for `/metrics`, and gauges with limits.

One anonymous file holds a block of 64 bit numbers per worker, mapped by all. Only its own worker writes to a block, one
aligned number at a time, so counting needs no lock, in processes as in threads; whoever is asked for the metrics adds the
blocks up. A limit is exact all the same: where one is set, a worker takes the file's `flock` while it adds up the gauges and
raises its own. The kernel frees that lock if its holder dies, which no semaphore in shared memory would survive, and
each worker has opened the file for itself, so it holds between threads as well as between processes.

Which number is where in a block is the gateway's matter: its gauges come first.
"""

import contextlib
import fcntl
import mmap
import os
from bisect import bisect_left
from collections.abc import Generator, Iterable
from typing import Final

_NUMBER_BYTES: Final = 8
_MICROSECONDS: Final = 1_000_000


class Histogram:
    """A histogram over whole numbers (or microseconds) with inclusive upper bounds."""

    def __init__(self, name: str, bounds: Iterable[int], scale: int, place: int) -> None:
        self.name = name
        self.bounds = tuple(bounds)
        self.scale = scale
        # One bucket for each bound, one for all above the last; then the sum.
        self.buckets_at = place
        self.sum_at = place + len(self.bounds) + 1


class SharedFile:
    """An anonymous file of 64 bit numbers, as the process that makes it sees it."""

    def __init__(self, name: str, numbers: int) -> None:
        self._numbers = numbers
        self._fd = os.memfd_create(name, os.MFD_CLOEXEC)
        os.ftruncate(self._fd, numbers * _NUMBER_BYTES)

    def open(self) -> "SharedNumbers":
        """The file, for one worker; called in the worker, for the lock belongs to who opened it."""
        # Through /proc, for a duplicate of the descriptor would share its lock.
        return SharedNumbers(os.open(f"/proc/self/fd/{self._fd}", os.O_RDWR | os.O_CLOEXEC), self._numbers)


class SharedNumbers:
    """A shared file as one worker sees it."""

    __slots__ = ("_fd", "_map", "all")

    def __init__(self, fd: int, numbers: int) -> None:
        self._fd = fd
        self._map = mmap.mmap(fd, numbers * _NUMBER_BYTES)
        self.all = memoryview(self._map).cast("q")

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Held by one worker at a time."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Lets go of the file."""
        self.all.release()
        self._map.close()
        os.close(self._fd)


class Ledger:
    """The blocks of all workers, as the process that makes them sees them."""

    def __init__(self, name: str, workers: int, numbers: int, gauges: int) -> None:
        self.workers = workers
        self._gauges = gauges
        # Whole cache lines, so that no two workers write to the same one.
        self._block = -(-numbers // 8) * 8
        self._file = SharedFile(name, workers * self._block)

    def open(self, worker: int) -> "Book":
        """The file, for one worker; called in the worker."""
        return Book(self._file.open(), worker, self._block)

    def forget_gauges(self, worker: int) -> None:
        """A worker has died: its sessions and requests are no more."""
        book = self.open(worker)
        for gauge in range(self._gauges):
            book.add(gauge, -book.own(gauge))
        book.close()


class Book:
    """The blocks of all workers as one worker sees them."""

    __slots__ = ("_all", "_block", "_numbers", "_own")

    def __init__(self, numbers: SharedNumbers, worker: int, block: int) -> None:
        self._numbers = numbers
        self._block = block
        self._all = numbers.all
        self._own = self._all[worker * block : (worker + 1) * block]

    def add(self, place: int, number: int = 1) -> None:
        """Adds to a number of this worker."""
        self._own[place] += number

    def own(self, place: int) -> int:
        """A number of this worker."""
        return self._own[place]

    def total(self, place: int) -> int:
        """A number over all workers."""
        return sum(self._all[place :: self._block])

    def take(self, gauge: int, most: int) -> bool:
        """Raises a gauge, unless the whole gateway has `most` already; 0 means no limit."""
        if most == 0:
            self._own[gauge] += 1
            return True
        with self._numbers.lock():
            if self.total(gauge) >= most:
                return False
            self._own[gauge] += 1
            return True

    def give_back(self, gauge: int) -> None:
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
        self._numbers.close()
