"""What is asked of a server that speaks as Deepgram does."""

import asyncio
from urllib.parse import urlencode

from record import FRAME_BYTES, RATE, Socket, open_socket, speech

from .session import Refused, Session, wait

DEEPGRAM = {
    "encoding": "linear16",
    "sample_rate": "16000",
    "channels": "1",
    "interim_results": "true",
    "endpointing": "300",
}


async def _deepgram(session: Session, headers: dict[str, str] | None = None, **more: str) -> Socket:
    session.params = {key: value for key, value in (DEEPGRAM | more).items() if DEEPGRAM.get(key) != value}
    path = "/v1/listen?" + urlencode(DEEPGRAM | more)
    socket = await open_socket(session.recording, session.port, path, additional_headers=headers or {})
    if socket is None:
        raise Refused
    return socket


async def deepgram_captions(session: Session) -> None:
    """Two utterances with a pause of 4 s, then CloseStream."""
    socket = await _deepgram(session)
    await socket.play(speech(session.clips[:2], 4.0))
    await socket.send('{"type":"CloseStream"}')
    await socket.ended()


async def deepgram_events(session: Session) -> None:
    """The same with vad_events and utterance_end_ms=1000."""
    socket = await _deepgram(session, vad_events="true", utterance_end_ms="1000")
    await socket.play(speech(session.clips[:2], 3.0))
    await socket.send('{"type":"CloseStream"}')
    await socket.ended()


async def deepgram_open_end(session: Session) -> None:
    """CloseStream in the middle of a sentence: what comes after it."""
    socket = await _deepgram(session)
    await socket.play(speech(session.clips[:1], 0.0)[: RATE * 2 * 3])
    await socket.send('{"type":"CloseStream"}')
    await socket.ended()


async def deepgram_silence(session: Session) -> None:
    """Six seconds of silence, nothing else."""
    socket = await _deepgram(session)
    await socket.play(bytes(RATE * 2 * 6))
    await socket.send('{"type":"CloseStream"}')
    await socket.ended()


async def deepgram_finalize(session: Session) -> None:
    """An utterance, then Finalize, then three more seconds of silence."""
    socket = await _deepgram(session)
    await socket.play(speech(session.clips[:1], 0.2))
    await socket.send('{"type":"Finalize"}')
    await socket.play(bytes(RATE * 2 * 3))
    if not socket.closed.is_set():
        await socket.send('{"type":"CloseStream"}')
    await socket.ended()


async def deepgram_refused(session: Session) -> None:
    """A sample rate of 12345 Hz."""
    socket = await _deepgram(session, sample_rate="12345")
    await socket.ended()


async def deepgram_wrong_messages(session: Session) -> None:
    """Text that is not JSON, an unknown type, JSON that is no object, three bytes, a frame, an empty binary message."""
    socket = await _deepgram(session)
    for message in ("hello", '{"type":"Nonsense"}', "[1]", b"odd", bytes(1280), b""):
        if not socket.closed.is_set():
            await (socket.play(message) if len(message) == FRAME_BYTES else socket.send(message))
            await asyncio.sleep(0.5)
    if not socket.closed.is_set():
        await socket.send('{"type":"CloseStream"}')
    await socket.ended()


async def deepgram_idle(session: Session) -> None:
    """Nothing is sent, for at most 40 s."""
    socket = await _deepgram(session)
    await wait(socket, 40.0)
    await socket.close()


async def deepgram_keep_alive(session: Session) -> None:
    """A KeepAlive every 5 s for 35 s, then an utterance."""
    socket = await _deepgram(session)
    for _ in range(7):
        await socket.send('{"type":"KeepAlive"}')
        await asyncio.sleep(5.0)
    await socket.play(speech(session.clips[:1], 1.0))
    await socket.send('{"type":"CloseStream"}')
    await socket.ended()


async def deepgram_unauthorised(session: Session) -> None:
    """A token that is not the server's."""
    socket = await _deepgram(session, {"Authorization": "Token wrong"})
    await wait(socket, 3.0)
    await socket.close()


async def deepgram_authorised(session: Session) -> None:
    """The server's token, as `Authorization: Token secret`."""
    socket = await _deepgram(session, {"Authorization": "Token secret"})
    await socket.play(bytes(RATE * 2))
    await socket.send('{"type":"CloseStream"}')
    await socket.ended()
