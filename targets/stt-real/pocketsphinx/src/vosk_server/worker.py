"""What runs in a decoding process: a recogniser for each session, and spare decoders.

Making a decoder loads the models, which takes a third of a second of CPU time, so a session that ends leaves its decoder to
the next.
"""

import signal

from pocketsphinx import Decoder

from .recogniser import Recogniser, make_decoder

_recognisers: dict[int, Recogniser] = {}
_spare: list[Decoder] = []


def prepare() -> None:
    """The parent ends this process by closing the pool; SIGTERM to the group must not come before."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def warm() -> None:
    """Makes the first decoder."""
    _spare.append(make_decoder())


def accept(session: int, pcm: bytes) -> str:
    """Decodes the audio of one message; returns its answer."""
    recogniser = _recognisers.get(session)
    if recogniser is None:
        recogniser = _recognisers[session] = Recogniser(_spare.pop() if _spare else make_decoder())
    return recogniser.accept(pcm)


def finish(session: int) -> str:
    """The last answer of a session."""
    recogniser = _recognisers.get(session)
    return recogniser.finish() if recogniser else Recogniser.NOTHING


def forget(session: int) -> None:
    """Forgets a session; its decoder becomes spare."""
    recogniser = _recognisers.pop(session, None)
    if recogniser is not None:
        _spare.append(recogniser.release())
