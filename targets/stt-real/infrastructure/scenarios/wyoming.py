"""What is asked of a server that speaks wyoming."""

import asyncio
import contextlib
import json
import struct
from typing import Any

from record import FRAME_BYTES, FRAME_MS, RATE, speech

from .session import Session


class Turn:
    """A connection of wyoming: events of a JSON line, data and payload."""

    def __init__(self, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._recording = session.recording
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, session: Session) -> "Turn":
        return cls(session, *await asyncio.open_connection("127.0.0.1", session.port))

    async def send(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """An event without payload, its data in the line."""
        line = json.dumps({"type": kind, **({"data": data} if data else {})}, separators=(",", ":")) + "\n"
        self._recording.message("c", line)
        await self._write(line.encode())

    async def raw(self, text: str) -> None:
        """Bytes that may be no event."""
        self._recording.message("c", text)
        await self._write(text.encode())

    async def _write(self, content: bytes) -> None:
        # The server may have closed; receive() records that.
        if self._writer.is_closing():
            return
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
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    await turn.play(speech(session.clips[:1], 0.3))
    await turn.send("audio-stop")
    while await turn.receive():
        pass


async def wyoming_two_turns(session: Session) -> None:
    """A second turn on the connection of the first."""
    turn = await Turn.open(session)
    for clip in session.clips[:2]:
        await turn.send("transcribe", {"language": "en"})
        await turn.send("audio-start", START)
        await turn.play(speech([clip], 0.3), paced=False)
        await turn.send("audio-stop")
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
    await turn.send("audio-stop")
    while await turn.receive():
        pass


async def wyoming_silence(session: Session) -> None:
    """A turn of three seconds of silence."""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    await turn.play(bytes(RATE * 2 * 3), paced=False)
    await turn.send("audio-stop")
    while await turn.receive():
        pass


async def wyoming_long_turn(session: Session) -> None:
    """A turn of three utterances with pauses of 3 s: does anything come before audio-stop?"""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    listener = asyncio.create_task(turn.receive(60.0))
    await turn.play(speech(session.clips[:3], 3.0))
    await turn.send("audio-stop")
    await listener
    await turn.receive(2.0)


async def wyoming_only_chunks(session: Session) -> None:
    """No transcribe and no audio-start, only chunks and audio-stop."""
    turn = await Turn.open(session)
    await turn.play(speech(session.clips[:1], 0.3), paced=False)
    await turn.send("audio-stop")
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
    await turn.send("audio-stop")
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
    await turn.send("audio-stop")
    while await turn.receive():
        pass


async def wyoming_odd_bytes(session: Session) -> None:
    """A chunk of an odd number of bytes."""
    turn = await Turn.open(session)
    await turn.send("transcribe", {"language": "en"})
    await turn.send("audio-start", START)
    await turn.play(bytes(1279), paced=False)
    await turn.send("audio-stop")
    while await turn.receive(5.0):
        pass


async def wyoming_idle(session: Session) -> None:
    """audio-start, then nothing for 40 s."""
    turn = await Turn.open(session)
    await turn.send("audio-start", START)
    await turn.receive(40.0)
    turn.close()
