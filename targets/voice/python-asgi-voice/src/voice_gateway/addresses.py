"""What each client's address may have, exactly, over all workers: sessions at a time, and upgrades in a second.

A hash table in shared memory, with a place for each address. A place has the address, the second that is being counted
and its upgrades, and for each worker the sessions of the address there: only the worker itself changes that number, so
a session's end needs no lock. A place without sessions whose second is over may be given to another address. All else is
done under the file's lock. The memory is only taken where addresses have been.
"""

import socket
from contextlib import AbstractContextManager
from time import monotonic_ns
from typing import Final

from gateway_common.ledger import SharedFile, SharedNumbers

# Addresses at a time; a power of two.
_PLACES: Final = 1 << 16
# Places that are looked at for one address. When all of them are in use by others, the table is as good as full.
_PROBES: Final = 64
_SECOND_NS: Final = 1_000_000_000

_ADDRESS, _SECOND_FROM_NS, _UPGRADES, _SESSIONS = range(4)


def key_of(address: str) -> int:
    """An IPv4 address as a number that is not 0."""
    return 1 + int.from_bytes(socket.inet_aton(address))


class AddressFile:
    """The table, as the process that makes it sees it."""

    def __init__(self, workers: int, places: int = _PLACES) -> None:
        self._workers = workers
        self._places = places
        self._stride = _SESSIONS + workers
        self._file = SharedFile("voice-gateway-addresses", places * self._stride)

    def open(self, worker: int) -> "Addresses":
        """The table, for one worker; called in the worker."""
        return Addresses(self._file.open(), worker, self._workers, self._places)

    def forget(self, worker: int) -> None:
        """A worker has died, and with it its sessions."""
        numbers = self._file.open()
        sessions = numbers.all[_SESSIONS + worker :: self._stride]
        for place, count in enumerate(sessions.tolist()):
            if count:
                sessions[place] = 0
        sessions.release()
        numbers.close()


class Addresses:
    """The table as one worker sees it."""

    __slots__ = ("_all", "_numbers", "_places", "_stride", "_worker")

    def __init__(self, numbers: SharedNumbers, worker: int, workers: int, places: int) -> None:
        self._numbers = numbers
        self._all = numbers.all
        self._worker = worker
        self._stride = _SESSIONS + workers
        self._places = places

    def lock(self) -> AbstractContextManager[None]:
        """Held by one worker at a time."""
        return self._numbers.lock()

    def place(self, address: str) -> int | None:
        """Where the numbers of an address are; `None` if there is no room. Under the lock."""
        key, now_ns = key_of(address), monotonic_ns()
        # Fibonacci hashing: neighbours in a network are far apart in the table.
        first = (key * 0x9E37_79B9_7F4A_7C15 >> 16) % self._places
        free = None
        for probe in range(_PROBES):
            at = (first + probe) % self._places * self._stride
            found = self._all[at + _ADDRESS]
            if found == key:
                return at
            if found == 0 or (not self.sessions(at) and now_ns - self._all[at + _SECOND_FROM_NS] >= _SECOND_NS):
                free = at if free is None else free
            if found == 0:
                break
        if free is not None:
            self._all[free + _ADDRESS] = key
            self._all[free + _SECOND_FROM_NS] = self._all[free + _UPGRADES] = 0
        return free

    def may_upgrade(self, at: int, most: int) -> bool:
        """Counts an upgrade in the current second of the address, which begins with the first; 0 means no limit."""
        now_ns = monotonic_ns()
        if now_ns - self._all[at + _SECOND_FROM_NS] >= _SECOND_NS:
            self._all[at + _SECOND_FROM_NS] = now_ns
            self._all[at + _UPGRADES] = 0
        self._all[at + _UPGRADES] += 1
        return most == 0 or self._all[at + _UPGRADES] <= most

    def sessions(self, at: int) -> int:
        """Sessions of the address, over all workers."""
        return sum(self._all[at + _SESSIONS : at + self._stride])

    def add_session(self, at: int) -> None:
        """A session begins. Under the lock."""
        self._all[at + _SESSIONS + self._worker] += 1

    def end_session(self, at: int) -> None:
        """A session is over. Needs no lock: its place is kept while it is counted."""
        self._all[at + _SESSIONS + self._worker] -= 1
