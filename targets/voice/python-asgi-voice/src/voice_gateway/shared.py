"""What the workers of this gateway share: where each of its numbers is in a block of the ledger, and the rest."""

from enum import Enum, IntEnum
from itertools import count, product
from typing import Final, NamedTuple

from gateway_common.ledger import Book, Ledger

from .addresses import Addresses, AddressFile
from .kept import Kept, KeptFile
from .messages import ErrorKind


class Gauge(IntEnum):
    """Gauges, which are also what limits count. Their values index a block."""

    SESSIONS = 0


class Counter(IntEnum):
    """Counters without labels, and those with fixed ones."""

    SESSIONS = 1
    AUDIO_IN_BYTES = 2
    AUDIO_OUT_BYTES = 3
    INTERIM_RESULTS = 4
    FINAL_RESULTS = 5


class Refusal(Enum):
    """Why an upgrade, or a request to speak, is refused: the HTTP status and the cause."""

    CAPACITY = (503, "capacity")
    DRAINING = (503, "draining")
    PER_ADDRESS = (429, "per_address")
    RATE = (429, "rate")
    AUTH = (401, "auth")

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def cause(self) -> str:
        return self.value[1]


class SpeakOutcome(Enum):
    """How a `speak` ends."""

    COMPLETE = "complete"
    FAILED = "failed"
    DROPPED = "dropped"


class Provider(Enum):
    """Who is asked."""

    DEEPGRAM_STT = "deepgram_stt"
    DEEPGRAM_TTS = "deepgram_tts"
    ELEVENLABS_TTS = "elevenlabs_tts"
    OPENAI_TTS = "openai_tts"
    CARTESIA_TTS = "cartesia_tts"


class RequestOutcome(Enum):
    """How a request to a provider ends."""

    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"


_place = count(len(Gauge) + len(Counter))
REFUSED_AT: Final = {refusal: next(_place) for refusal in Refusal}
SPEAKS_AT: Final = {outcome: next(_place) for outcome in SpeakOutcome}
ERRORS_AT: Final = {kind: next(_place) for kind in ErrorKind}
REQUESTS_AT: Final = {pair: next(_place) for pair in product(Provider, RequestOutcome)}
_NUMBERS: Final = next(_place)


class Share(NamedTuple):
    """What is shared, as one worker sees it."""

    book: Book
    addresses: Addresses
    voices: Kept


class Shares:
    """What is shared, as the process that makes it sees it."""

    def __init__(self, workers: int) -> None:
        self._ledger = Ledger("voice-gateway", workers, _NUMBERS, gauges=len(Gauge))
        self._addresses = AddressFile(workers)
        self._voices = KeptFile()

    def open(self, worker: int) -> Share:
        """Called in the worker."""
        return Share(self._ledger.open(worker), self._addresses.open(worker), self._voices.open())

    def forget(self, worker: int) -> None:
        """A worker has died: its sessions are no more."""
        self._ledger.forget_gauges(worker)
        self._addresses.forget(worker)
