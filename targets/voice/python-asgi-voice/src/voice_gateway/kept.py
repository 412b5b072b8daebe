"""An answer that all workers keep for a while, in shared memory."""

from time import monotonic_ns
from typing import Final

from gateway_common.ledger import SharedFile, SharedNumbers

KEPT_BYTES_MAX: Final = 1 << 20

_UNTIL_NS, _SIZE, _CONTENT = range(3)


class KeptFile:
    """The memory, as the process that makes it sees it; it is only taken where an answer has been."""

    def __init__(self) -> None:
        self._file = SharedFile("voice-gateway-kept", _CONTENT + KEPT_BYTES_MAX // 8)

    def open(self) -> "Kept":
        """The memory, for one worker; called in the worker."""
        return Kept(self._file.open())


class Kept:
    """The answer as one worker sees it."""

    def __init__(self, numbers: SharedNumbers) -> None:
        self._numbers = numbers
        self._content = numbers.all[_CONTENT:].cast("B")

    def get(self) -> bytes | None:
        """The answer, unless it is too old or there never was one."""
        with self._numbers.lock():
            if monotonic_ns() >= self._numbers.all[_UNTIL_NS]:
                return None
            return bytes(self._content[: self._numbers.all[_SIZE]])

    def put(self, answer: bytes, for_s: float) -> None:
        """Keeps an answer of `KEPT_BYTES_MAX` at most."""
        with self._numbers.lock():
            self._content[: len(answer)] = answer
            self._numbers.all[_SIZE] = len(answer)
            self._numbers.all[_UNTIL_NS] = monotonic_ns() + round(for_s * 1e9)
