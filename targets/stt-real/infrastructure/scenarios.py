"""What record.py does with a server, by dialect: each scenario asks one question of the wire."""

import asyncio
import contextlib
import json
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from record import FRAME_BYTES, FRAME_MS, RATE, Recording, Socket, open_socket, speech


@dataclass
class Session:
    """What a scenario works with."""

    recording: Recording
    port: int
    clips: list[Path]
    params: dict[str, str] = field(default_factory=dict)


# --- deepgram


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
        raise _Refused
    return socket


class _Refused(Exception):
    """The upgrade was refused, which is recorded."""


async def deepgram_captions(session: Session) -> None:
    """Two utterances with a pause of 4 s, then CloseStream."""
    socket = await _deepgram(session)
    await socket.play(speech(session.clips[:2], 4.0))
    await socket.send('{"type":"CloseStream"}', act="end")
    await socket.ended()


async def deepgram_events(session: Session) -> None:
    """The same with vad_events and utterance_end_ms=1000."""
    socket = await _deepgram(session, vad_events="true", utterance_end_ms="1000")
    await socket.play(speech(session.clips[:2], 3.0))
    await socket.send('{"type":"CloseStream"}', act="end")
    await socket.ended()


async def deepgram_open_end(session: Session) -> None:
    """CloseStream in the middle of a sentence: what comes after it."""
    socket = await _deepgram(session)
    await socket.play(speech(session.clips[:1], 0.0)[: RATE * 2 * 3])
    await socket.send('{"type":"CloseStream"}', act="end")
    await socket.ended()


async def deepgram_silence(session: Session) -> None:
    """Six seconds of silence, nothing else."""
    socket = await _deepgram(session)
    await socket.play(bytes(RATE * 2 * 6))
    await socket.send('{"type":"CloseStream"}', act="end")
    await socket.ended()


async def deepgram_finalize(session: Session) -> None:
    """An utterance, then Finalize, then three more seconds of silence."""
    socket = await _deepgram(session)
    await socket.play(speech(session.clips[:1], 0.2))
    await socket.send('{"type":"Finalize"}', act="flush")
    await socket.play(bytes(RATE * 2 * 3))
    if not socket.closed.is_set():
        await socket.send('{"type":"CloseStream"}', act="end")
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
        await socket.send('{"type":"CloseStream"}', act="end")
    await socket.ended()


async def deepgram_idle(session: Session) -> None:
    """Nothing is sent, for at most 40 s."""
    socket = await _deepgram(session)
    await _wait(socket, 40.0)
    await socket.close()


async def deepgram_keep_alive(session: Session) -> None:
    """A KeepAlive every 5 s for 35 s, then an utterance."""
    socket = await _deepgram(session)
    for _ in range(7):
        await socket.send('{"type":"KeepAlive"}', act="keep-alive")
        await asyncio.sleep(5.0)
    await socket.play(speech(session.clips[:1], 1.0))
    await socket.send('{"type":"CloseStream"}', act="end")
    await socket.ended()


async def deepgram_unauthorised(session: Session) -> None:
    """A token that is not the server's."""
    socket = await _deepgram(session, {"Authorization": "Token wrong"})
    await _wait(socket, 3.0)
    await socket.close()


async def deepgram_authorised(session: Session) -> None:
    """The server's token, as `Authorization: Token secret`."""
    socket = await _deepgram(session, {"Authorization": "Token secret"})
    await socket.play(bytes(RATE * 2))
    await socket.send('{"type":"CloseStream"}', act="end")
    await socket.ended()


# --- whisperlive


async def _whisperlive(session: Session, uid: str = "caller-1", **more: Any) -> Socket:
    socket = await open_socket(session.recording, session.port, "/")
    if socket is None:
        raise _Refused
    start = {
        "uid": uid, "language": "en", "task": "transcribe", "model": "tiny.en", "use_vad": True, "audio_format": "int16",
    }
    await socket.send(json.dumps(start | more, separators=(",", ":")), act="opening")
    return socket


def _is_ready(message: Any) -> bool:
    return message.get("message") == "SERVER_READY"


async def whisperlive_captions(session: Session) -> None:
    """Two utterances with pauses of 4 s, then END_OF_AUDIO."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(speech(session.clips[:2], 4.0))
    await socket.send(b"END_OF_AUDIO", act="end")
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
    await socket.send(b"END_OF_AUDIO", act="end")
    await socket.ended()


async def whisperlive_long(session: Session) -> None:
    """All clips twice, with pauses of 200 ms: what becomes of speech without a longer pause."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(b"".join(speech([clip], 0.2, 0.0) for clip in session.clips * 2))
    await socket.play(bytes(RATE * 2 * 5))
    await socket.send(b"END_OF_AUDIO", act="end")
    await socket.ended()


async def whisperlive_open_end(session: Session) -> None:
    """END_OF_AUDIO 200 ms after the last word: what becomes of the open segment."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(speech(session.clips[:1], 0.2))
    await socket.send(b"END_OF_AUDIO", act="end")
    await socket.ended()


async def whisperlive_silence(session: Session) -> None:
    """Eight seconds of silence, nothing else."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(bytes(RATE * 2 * 8))
    await socket.send(b"END_OF_AUDIO", act="end")
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
        raise _Refused
    await socket.send("hello")
    await _wait(socket, 5.0)
    await socket.close()


async def whisperlive_missing_field(session: Session) -> None:
    """The first message has no `language`."""
    socket = await open_socket(session.recording, session.port, "/")
    if socket is None:
        raise _Refused
    await socket.send('{"uid":"caller-1","task":"transcribe","model":"tiny.en","use_vad":true}')
    await _wait(socket, 5.0)
    await socket.close()


async def whisperlive_bad_format(session: Session) -> None:
    """`audio_format` is one that the server does not have."""
    socket = await _whisperlive(session, audio_format="mulaw")
    await _wait(socket, 5.0)
    await socket.close()


async def whisperlive_odd_bytes(session: Session) -> None:
    """A binary message of three bytes."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.send(b"odd")
    await _wait(socket, 5.0)
    await socket.close()


async def whisperlive_idle(session: Session) -> None:
    """Nothing is sent after the first message, for 45 s."""
    socket = await _whisperlive(session)
    await _wait(socket, 45.0)
    await socket.close()


async def whisperlive_time_limit(session: Session) -> None:
    """Speech for longer than the server's max_connection_time, here 5 s."""
    socket = await _whisperlive(session)
    await socket.until(_is_ready)
    await socket.play(speech(session.clips[:3], 1.0))
    await _wait(socket, 5.0)
    await socket.close()


async def whisperlive_unauthorised(session: Session) -> None:
    """The server has an API key, this client has none."""
    await _whisperlive(session)


# --- vosk


async def _vosk(session: Session) -> Socket:
    socket = await open_socket(session.recording, session.port, "/")
    if socket is None:
        raise _Refused
    await socket.send('{"config":{"sample_rate":16000,"words":true}}', act="opening")
    return socket


async def vosk_captions(session: Session) -> None:
    """Two utterances with pauses of 2 s, then eof."""
    socket = await _vosk(session)
    await socket.play(speech(session.clips[:2], 2.0))
    await socket.send('{"eof" : 1}', act="end")
    await socket.ended()


async def vosk_open_end(session: Session) -> None:
    """eof right after the last word."""
    socket = await _vosk(session)
    await socket.play(speech(session.clips[:1], 0.1))
    await socket.send('{"eof" : 1}', act="end")
    await socket.ended()


async def vosk_wrong_message(session: Session) -> None:
    """Text that is not JSON."""
    socket = await _vosk(session)
    await socket.send("hello")
    await _wait(socket, 3.0)
    await socket.close()


# --- wyoming


class Turn:
    """A connection of wyoming: events of a JSON line, data and payload."""

    def __init__(self, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._recording = session.recording
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, session: Session) -> "Turn":
        return cls(session, *await asyncio.open_connection("127.0.0.1", session.port))

    async def send(self, kind: str, data: dict[str, Any] | None = None, **more: Any) -> None:
        """An event without payload, its data in the line."""
        line = json.dumps({"type": kind, **({"data": data} if data else {})}, separators=(",", ":")) + "\n"
        self._recording.message("c", line, **more)
        await self._write(line.encode())

    async def raw(self, text: str) -> None:
        """Bytes that may be no event."""
        self._recording.message("c", text)
        await self._write(text.encode())

    async def _write(self, content: bytes) -> None:
        # The server may have closed; receive() records that.
        with contextlib.suppress(ConnectionError):
            self._writer.write(content)
            await self._writer.drain()

    async def play(self, pcm: bytes, rate: int = RATE, *, paced: bool = True) -> None:
        """Audio at its own pace."""
        begin = asyncio.get_running_loop().time()
        for index, start in enumerate(range(0, len(pcm), FRAME_BYTES)):
            if paced:
                await asyncio.sleep(max(0.0, begin + (index + 1) * FRAME_MS / 1000 - asyncio.get_running_loop().time()))
            frame = pcm[start : start + FRAME_BYTES]
            data = {"rate": rate, "width": 2, "channels": 1}
            head = {"type": "audio-chunk", "data": data, "payload_length": len(frame)}
            self._recording.audio(len(frame))
            await self._write(json.dumps(head, separators=(",", ":")).encode() + b"\n" + frame)

    async def receive(self, patience_s: float = 30.0) -> dict[str, Any] | None:
        """The next event, recorded as it came; `None` at the end or when none comes in time."""
        try:
            line = await asyncio.wait_for(self._reader.readline(), patience_s)
        except TimeoutError:
            return None
        except ConnectionError:
            line = b""
        if not line:
            self._recording.add("s", close=None, reason="")
            self._writer.close()
            return None
        event: dict[str, Any] = json.loads(line)
        data = await self._reader.readexactly(event.get("data_length") or 0)
        payload = await self._reader.readexactly(event.get("payload_length") or 0)
        self._recording.message("s", (line + data + payload).decode())
        event["data"] = event.get("data", {}) | (json.loads(data) if data else {})
        return event

    def close(self) -> None:
        self._recording.add("c", close=None, reason="")
        self._writer.close()


START = {"rate": RATE, "width": 2, "channels": 1}


async def wyoming_turn(session: Session) -> None:
    """One turn, then the server's end."""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"}, act="opening")
    await turn.send("audio-start", START, act="opening")
    await turn.play(speech(session.clips[:1], 0.3))
    await turn.send("audio-stop", act="end")
    while await turn.receive():
        pass


async def wyoming_two_turns(session: Session) -> None:
    """A second turn on the connection of the first."""
    turn = await Turn.open(session)
    for clip in session.clips[:2]:
        await turn.send("transcribe", {"language": "en"})
        await turn.send("audio-start", START)
        await turn.play(speech([clip], 0.3), paced=False)
        await turn.send("audio-stop", act="end")
        if await turn.receive() is None:
            return
        await asyncio.sleep(0.5)
    await turn.receive(2.0)
    turn.close()


async def wyoming_describe(session: Session) -> None:
    """`describe`, then `ping`, then nothing for 5 s."""
    turn = await Turn.open(session)
    await turn.send("describe")
    await turn.receive()
    await turn.send("ping", {"text": "here"})
    await turn.receive(5.0)
    turn.close()


async def wyoming_no_audio(session: Session) -> None:
    """audio-stop without any audio."""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    await turn.send("audio-stop", act="end")
    while await turn.receive():
        pass


async def wyoming_silence(session: Session) -> None:
    """A turn of three seconds of silence."""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    await turn.play(bytes(RATE * 2 * 3), paced=False)
    await turn.send("audio-stop", act="end")
    while await turn.receive():
        pass


async def wyoming_long_turn(session: Session) -> None:
    """A turn of three utterances with pauses of 3 s: does anything come before audio-stop?"""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    listener = asyncio.create_task(turn.receive(60.0))
    await turn.play(speech(session.clips[:3], 3.0))
    await turn.send("audio-stop", act="end")
    await listener
    await turn.receive(2.0)




async def wyoming_only_chunks(session: Session) -> None:
    """No transcribe and no audio-start, only chunks and audio-stop."""
    turn = await Turn.open(session)
    await turn.play(speech(session.clips[:1], 0.3), paced=False)
    await turn.send("audio-stop", act="end")
    while await turn.receive():
        pass


async def wyoming_resampled(session: Session) -> None:
    """The same samples declared as 8000 Hz: does the server resample?"""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", {"rate": 8000, "width": 2, "channels": 1})
    pcm = speech(session.clips[:1], 0.3)
    samples = struct.unpack(f"<{len(pcm) // 2}h", pcm)[::2]
    await turn.play(struct.pack(f"<{len(samples)}h", *samples), 8000, paced=False)
    await turn.send("audio-stop", act="end")
    while await turn.receive():
        pass


async def wyoming_bad_line(session: Session) -> None:
    """A line that is not JSON."""
    turn = await Turn.open(session)
    await turn.raw("hello\n")
    await turn.receive(5.0)
    turn.close()


async def wyoming_unknown_event(session: Session) -> None:
    """An event of an unknown type, then a turn."""
    turn = await Turn.open(session)
    await turn.send("nonsense", {"a": 1})
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    await turn.play(speech(session.clips[:1], 0.3), paced=False)
    await turn.send("audio-stop", act="end")
    while await turn.receive():
        pass


async def wyoming_odd_bytes(session: Session) -> None:
    """A chunk of an odd number of bytes."""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    await turn.play(bytes(1279), paced=False)
    await turn.send("audio-stop", act="end")
    while await turn.receive(5.0):
        pass


async def wyoming_idle(session: Session) -> None:
    """audio-start, then nothing for 40 s."""
    turn = await Turn.open(session)
    await turn.send("audio-start", START)
    await turn.receive(40.0)
    turn.close()


async def _wait(socket: Socket, seconds: float) -> None:
    try:
        await asyncio.wait_for(socket.closed.wait(), seconds)
    except TimeoutError:
        return


def _of(dialect: str) -> dict[str, Callable[[Session], Awaitable[None]]]:
    prefix = f"{dialect}_"
    return {
        name.removeprefix(prefix).replace("_", "-"): _unless_refused(value)
        for name, value in globals().items()
        if name.startswith(prefix)
    }


def _unless_refused(scenario: Callable[[Session], Awaitable[None]]) -> Callable[[Session], Awaitable[None]]:
    async def run(session: Session) -> None:
        try:
            await scenario(session)
        except _Refused:
            return

    run.__doc__ = scenario.__doc__
    return run


def final_text(dialect: str, recording: Recording) -> str:
    """All final words of a recorded session."""
    messages = [line["text"] for line in recording.lines if line["dir"] == "s" and "text" in line]
    if dialect == "wyoming":
        return " ".join(json.loads(text.partition("\n")[2])["text"] for text in messages if '"transcript"' in text)
    parsed = [json.loads(text) for text in messages]
    if dialect == "vosk":
        return " ".join(message.get("text", "") for message in parsed)
    if dialect == "deepgram":
        finals = [message for message in parsed if message["type"] == "Results" and message["is_final"]]
        return " ".join(message["channel"]["alternatives"][0]["transcript"] for message in finals)
    # The open segment counts as well: without speech after it, WhisperLive seldom completes it.
    segments = [message["segments"] for message in parsed if "segments" in message]
    return " ".join(segment["text"] for segment in segments[-1]) if segments else ""


SCENARIOS = {dialect: _of(dialect) for dialect in ("deepgram", "vosk", "whisperlive", "wyoming")}
