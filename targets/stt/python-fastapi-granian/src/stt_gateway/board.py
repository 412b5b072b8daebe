"""Numbers that all workers share, so that limits and metrics hold for the whole gateway.

One anonymous file has a block of 64 bit numbers for each worker. Only its own worker writes to a block, so counting takes no
lock. Where a limit is set, a worker takes the file's lock while it adds up a gauge and raises its own. The kernel frees the
lock of a worker that dies.
"""

import contextlib
import fcntl
import mmap
import os
from collections.abc import Iterator

# Where workers find the file of the process that started them.
VARIABLE = "STT_GATEWAY_BOARD"

_NUMBER_BYTES = 8
# The first number of a block: the process that owns it.
_OWNER = 0


def create(workers: int, numbers: int) -> str:
    """Makes the file, and returns a path to it that is good as long as this process runs."""
    fd = os.memfd_create("stt-gateway", os.MFD_CLOEXEC)
    # Twice the workers, because at a rolling restart the old and the new ones run together.
    os.ftruncate(fd, 2 * workers * (numbers + 1) * _NUMBER_BYTES)
    return f"/proc/{os.getpid()}/fd/{fd}"


class Board:
    """The numbers of all workers, as one worker sees them. A number is known by its place, from 0 on."""

    def __init__(self, path: str, numbers: int, gauges: range) -> None:
        # Each worker opens the file itself, because the lock belongs to what was opened.
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._map = mmap.mmap(self._fd, 0)
        self._all = memoryview(self._map).cast("q")
        self._block = numbers + 1
        self._own = self._claim(gauges)

    def _claim(self, gauges: range) -> memoryview:
        """A block that no living process owns, without the sessions and requests of a dead one."""
        with self._lock():
            for start in range(0, len(self._all), self._block):
                if not _is_alive(self._all[start + _OWNER]):
                    self._all[start + _OWNER] = os.getpid()
                    own = self._all[start + 1 : start + self._block]
                    for gauge in gauges:
                        own[gauge] = 0
                    return own
        raise RuntimeError("more workers than the shared file has blocks")

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def add(self, place: int, number: int = 1) -> None:
        """Adds to a number of this worker."""
        self._own[place] += number

    def total(self, place: int) -> int:
        """A number over all workers."""
        return sum(self._all[place + 1 :: self._block])

    def take(self, gauge: int, most: int) -> bool:
        """Raises a gauge, unless the whole gateway has `most` already; 0 means no limit."""
        if most == 0:
            self.add(gauge)
            return True
        with self._lock():
            if self.total(gauge) >= most:
                return False
            self.add(gauge)
            return True

    def give_back(self, gauge: int) -> None:
        """Lowers a gauge. Needs no lock: at worst another worker refuses what a moment later it would not."""
        self.add(gauge, -1)


def _is_alive(process: int) -> bool:
    if process == 0:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
