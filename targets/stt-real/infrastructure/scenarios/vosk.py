"""What is asked of a server that speaks as vosk-server does."""

from record import Socket, open_socket, speech

from .session import Refused, Session, wait


async def _vosk(session: Session) -> Socket:
    socket = await open_socket(session.recording, session.port, "/")
    if socket is None:
        raise Refused
    await socket.send('{"config":{"sample_rate":16000,"words":true}}')
    return socket


async def vosk_captions(session: Session) -> None:
    """Two utterances with pauses of 2 s, then eof."""
    socket = await _vosk(session)
    await socket.play(speech(session.clips[:2], 2.0))
    await socket.send('{"eof" : 1}')
    await socket.ended()


async def vosk_open_end(session: Session) -> None:
    """eof right after the last word."""
    socket = await _vosk(session)
    await socket.play(speech(session.clips[:1], 0.1))
    await socket.send('{"eof" : 1}')
    await socket.ended()


async def vosk_wrong_message(session: Session) -> None:
    """Text that is not JSON."""
    socket = await _vosk(session)
    await socket.send("hello")
    await wait(socket, 3.0)
    await socket.close()
