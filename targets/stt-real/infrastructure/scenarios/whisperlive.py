"""What is asked of WhisperLive."""

import json
from typing import Any

from record import RATE, Recording, Socket, open_socket, speech

from .session import Refused, Session, wait


async def _whisperlive(session: Session, uid: str = "caller-1", **more: Any) -> Socket:
    socket = await open_socket(session.recording, session.port, "/")
    if socket is None:
        raise Refused
    start = {
        "uid": uid,
        "language": "en",
        "task": "transcribe",
        "model": "tiny.en",
        "use_vad": True,
        "audio_format": "int16",
    }
    await socket.send(json.dumps(start | more, separators=(",", ":")))
    return socket


def _is_ready(message: Any) -> bool:
    return message.get("message") == "SERVER_READY"


async def whisperlive_captions(session: Session) -> None:
    """Two utterances with pauses of 4 s, then END_OF_AUDIO."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(speech(session.clips[:2], 4.0))
    await socket.send(b"END_OF_AUDIO")
    await socket.ended()


async def whisperlive_patient(session: Session) -> None:
    """One utterance, then silence until the text reaches its end, for at most 30 s."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    pcm = speech(session.clips[:1], 0.0)
    await socket.play(pcm)
    # The clip's own silence at its end is shorter than this.
    end_s = len(pcm) / 2 / RATE - 0.5
    for _ in range(60):
        ends = [float(segment["end"]) for message in socket.received for segment in message.get("segments", [])]
        if ends and max(ends) >= end_s:
            break
        await socket.play(bytes(RATE))
    await socket.send(b"END_OF_AUDIO")
    await socket.ended()


async def whisperlive_long(session: Session) -> None:
    """All clips twice, with pauses of 200 ms: what becomes of speech without a longer pause."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(b"".join(speech([clip], 0.2, 0.0) for clip in session.clips * 2))
    await socket.play(bytes(RATE * 2 * 5))
    await socket.send(b"END_OF_AUDIO")
    await socket.ended()


async def whisperlive_open_end(session: Session) -> None:
    """END_OF_AUDIO 200 ms after the last word: what becomes of the open segment."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(speech(session.clips[:1], 0.2))
    await socket.send(b"END_OF_AUDIO")
    await socket.ended()


async def whisperlive_silence(session: Session) -> None:
    """Eight seconds of silence, nothing else."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(bytes(RATE * 2 * 8))
    await socket.send(b"END_OF_AUDIO")
    await socket.ended()


async def whisperlive_full(session: Session) -> None:
    """Four clients are there already; this is the fifth."""
    others = [await _whisperlive(Session(Recording(), session.port, []), f"other-{n}") for n in range(4)]
    for other in others:
        await other.until(_is_ready)
    socket = await _whisperlive(session, "caller-5")
    await socket.ended()
    for other in others:
        await other.close()


async def whisperlive_bad_start(session: Session) -> None:
    """The first message is not JSON."""
    socket = await open_socket(session.recording, session.port, "/")
    if socket is None:
        raise Refused
    await socket.send("hello")
    await wait(socket, 5.0)
    await socket.close()


async def whisperlive_missing_field(session: Session) -> None:
    """The first message has no `language`."""
    socket = await open_socket(session.recording, session.port, "/")
    if socket is None:
        raise Refused
    await socket.send('{"uid":"caller-1","task":"transcribe","model":"tiny.en","use_vad":true}')
    await wait(socket, 5.0)
    await socket.close()


async def whisperlive_bad_format(session: Session) -> None:
    """`audio_format` is one that the server does not have."""
    socket = await _whisperlive(session, audio_format="mulaw")
    await wait(socket, 5.0)
    await socket.close()


async def whisperlive_odd_bytes(session: Session) -> None:
    """A binary message of three bytes."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.send(b"odd")
    await wait(socket, 5.0)
    await socket.close()


async def whisperlive_idle(session: Session) -> None:
    """Nothing is sent after the first message, for 45 s."""
    socket = await _whisperlive(session)
    await wait(socket, 45.0)
    await socket.close()


async def whisperlive_time_limit(session: Session) -> None:
    """Speech for longer than the server's max_connection_time, here 5 s."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(speech(session.clips[:3], 1.0))
    await wait(socket, 5.0)
    await socket.close()


async def whisperlive_unauthorised(session: Session) -> None:
    """The server has an API key, this client has none."""
    await _whisperlive(session)
