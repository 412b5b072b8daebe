"""Speaks to a real server as a client of its dialect would, and records both sides.

    python record.py DIALECT PORT SERVER FOLDER SCENARIO… --clips CLIP.wav…

The server runs already, on 127.0.0.1. Each scenario (`scenarios.py`) becomes FOLDER/real-SERVER-SCENARIO.jsonl, lines as
`../vectors/README.md` has them. Needs the package `websockets`, which the targets' environments have.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

RATE = 16_000
FRAME_MS = 40
FRAME_BYTES = RATE * FRAME_MS // 1000 * 2
# Nothing here waits longer for a server.
PATIENCE_S = 60.0
AUDIO_PER_LINE = 5


class Recording:
    """The lines of a session, timed from its first."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._begin = time.monotonic()

    def add(self, direction: str, **what: Any) -> None:
        """One message or end."""
        ms = round((time.monotonic() - self._begin) * 1000)
        self.lines.append({"dir": direction, "ms": ms, **what})

    def audio(self, size: int) -> None:
        """A message of audio. Up to five of one size that follow each other share a line, which has the time of the first."""
        last = self.lines[-1] if self.lines else {}
        if last.get("audio_bytes") == size and last.get("messages", 1) < AUDIO_PER_LINE:
            last["messages"] = last.get("messages", 1) + 1
        else:
            self.add("c", audio_bytes=size)

    def message(self, direction: str, message: str | bytes) -> None:
        """A whole message."""
        if isinstance(message, str):
            self.add(direction, text=message)
        else:
            self.add(direction, base64=base64.b64encode(message).decode())

    def write(self, path: Path, about: dict[str, Any]) -> None:
        """One JSON object per line."""
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (about, *self.lines)))


def speech(clips: list[Path], pause_s: float, lead_s: float = 0.5) -> bytes:
    """PCM: silence of `lead_s`, then the clips, each followed by a pause."""
    pcm = bytes(int(RATE * lead_s) * 2)
    for clip in clips:
        with wave.open(str(clip)) as wav:
            if (wav.getframerate(), wav.getsampwidth(), wav.getnchannels()) != (RATE, 2, 1):
                raise SystemExit(f"{clip}: give a WAV file of one channel, 16 bit, {RATE} Hz")
            pcm += wav.readframes(wav.getnframes())
        pcm += bytes(int(RATE * pause_s) * 2)
    return pcm


class Socket:
    """A WebSocket session that records itself."""

    def __init__(self, recording: Recording, connection: Any) -> None:
        self.recording = recording
        self.connection = connection
        self.received: list[Any] = []
        self.closed = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            async for message in self.connection:
                self.recording.message("s", message)
                self.received.append(json.loads(message) if isinstance(message, str) else message)
        except ConnectionClosed:
            pass
        code = self.connection.close_code
        # 1006 is the library's word for an end without a close frame.
        self.recording.add("s", close=None if code == 1006 else code, reason=self.connection.close_reason or "")
        self.closed.set()

    async def send(self, message: str | bytes) -> None:
        """A message that is not audio."""
        self.recording.message("c", message)
        await self.connection.send(message)

    async def play(self, pcm: bytes, pack: Callable[[bytes], bytes] = bytes) -> None:
        """Audio at its own pace, by absolute times. Ends early if the server closes."""
        from websockets.exceptions import ConnectionClosed

        begin = time.monotonic()
        for index, start in enumerate(range(0, len(pcm), FRAME_BYTES)):
            await asyncio.sleep(max(0.0, begin + (index + 1) * FRAME_MS / 1000 - time.monotonic()))
            frame = pack(pcm[start : start + FRAME_BYTES])
            if self.closed.is_set():
                return
            with contextlib.suppress(ConnectionClosed):
                self.recording.audio(len(frame))
                await self.connection.send(frame)

    async def until(self, what: Callable[[Any], bool]) -> None:
        """Waits for a message for which `what` holds, or for the end."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.closed.is_set() and not any(what(message) for message in self.received):
            if time.monotonic() > deadline:
                raise SystemExit(f"nothing came in {PATIENCE_S:.0f} s")
            await asyncio.sleep(0.01)

    async def ended(self) -> None:
        """Waits for the server's end."""
        await asyncio.wait_for(self.closed.wait(), PATIENCE_S)

    async def close(self) -> None:
        """The client closes; the server's answer is recorded."""
        if not self.closed.is_set():
            self.recording.add("c", close=1000, reason="")
            await self.connection.close()
            await self.ended()


async def open_socket(recording: Recording, port: int, path: str, **options: Any) -> Socket | None:
    """Opens a WebSocket; `None` if the server refuses the upgrade, which is recorded."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    try:
        connection = await connect(
            f"ws://127.0.0.1:{port}{path}", compression=None, max_size=None, ping_interval=None, **options
        )
    except InvalidStatus as refusal:
        answer = refusal.response
        reason = answer.headers.get("dg-error") or answer.body.decode(errors="replace").strip()
        recording.add("s", refused=answer.status_code, reason=reason)
        return None
    return Socket(recording, connection)


def main() -> None:
    """Runs the scenarios that the command names, one after another."""
    from scenarios import SCENARIOS, Session

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dialect", choices=SCENARIOS)
    parser.add_argument("port", type=int)
    parser.add_argument("server", help="its name and version, such as whisperlivekit-0.2.26")
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenario", nargs="*", help="all of the dialect, if none is named")
    parser.add_argument("--clips", nargs="+", type=Path, required=True)
    given = parser.parse_args()
    for name in given.scenario or SCENARIOS[given.dialect]:
        scenario = SCENARIOS[given.dialect][name]
        session = Session(Recording(), given.port, given.clips)
        asyncio.run(scenario(session))
        about = {"about": f"{given.server}: {(scenario.__doc__ or '').strip()}"}
        if session.params:
            about["options"] = {"params": session.params}
        path = given.folder / f"real-{given.server}-{name}.jsonl"
        session.recording.write(path, about)
        print(path)


if __name__ == "__main__":
    main()
