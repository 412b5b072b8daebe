"""What several tests need: the gateway as a process, callers, and patience."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

FOLDER = Path(__file__).resolve().parents[1]
SOURCES = (FOLDER / "src", FOLDER.parents[1] / "stt" / "python-asgi" / "src")
VECTORS = FOLDER.parent / "vectors"

CONFIG: dict[str, Any] = {
    "type": "config",
    "stt_config": {
        "provider": "deepgram",
        "language": "en-US",
        "sample_rate": 16000,
        "channels": 1,
        "punctuation": True,
        "encoding": "linear16",
        "model": "nova-3",
    },
    "tts_config": {"provider": "deepgram", "model": "aura-2"},
}
TTS: dict[str, Any] = {"provider": "deepgram", "model": "aura-2"}


def environment(**variables: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": ":".join(str(source) for source in SOURCES),
        "PYTHONDONTWRITEBYTECODE": "1",
        "WORKER_THREADS": "2",
        **variables,
    }


def eventually(is_true: Callable[[], object], within_s: float = 5.0) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < deadline, "it never was so"
        time.sleep(0.005)


class Caller:
    """A session of a gateway."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def say(self, message: dict[str, Any]) -> None:
        self.connection.send(json.dumps(message))

    def speak(self, text: str, **fields: bool) -> None:
        self.say({"type": "speak", "text": text, **fields})

    def next(self, within_s: float = 5.0) -> dict[str, Any] | bytes:
        message = self.connection.recv(within_s)
        return message if isinstance(message, bytes) else json.loads(message)

    def message(self, within_s: float = 5.0) -> dict[str, Any]:
        """The next message, which is no audio."""
        message = self.next(within_s)
        assert isinstance(message, dict), "audio came"
        return message

    def reply(self, within_s: float = 5.0) -> tuple[bytes, dict[str, Any]]:
        """The audio up to the next message, and the message."""
        audio = bytearray()
        while isinstance(message := self.next(within_s), bytes):
            audio += message
        return bytes(audio), message

    def error(self, within_s: float = 5.0) -> str:
        message = self.message(within_s)
        assert message["type"] == "error", message
        return str(message["kind"])

    def hears_nothing(self, for_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            message = self.next(for_s)
            raise AssertionError(message)

    def close_code(self, within_s: float = 5.0) -> int | None:
        """The code with which the connection ends."""
        deadline = time.monotonic() + within_s
        try:
            while True:
                self.connection.recv(max(0.001, deadline - time.monotonic()))
        except ConnectionClosed as end:
            return end.rcvd.code if end.rcvd is not None else None


class Gateway:
    """A gateway that runs."""

    def __init__(self, port: int, process: subprocess.Popen[str], start_line: str) -> None:
        self.port = port
        self.process = process
        self.start_line = start_line

    @contextlib.contextmanager
    def connected(self, **arguments: Any) -> Generator[Caller]:
        """A session without its config."""
        url = f"ws://127.0.0.1:{self.port}/ws"
        with connect(url, compression=None, proxy=None, max_size=None, close_timeout=1, **arguments) as connection:
            yield Caller(connection)

    @contextlib.contextmanager
    def caller(self, **fields: Any) -> Generator[Caller]:
        """A session that is ready."""
        with self.connected() as caller:
            caller.say({**CONFIG, **fields})
            message = caller.message()
            assert message["type"] == "ready", message
            yield caller

    def http(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """A request's answer; the body so far where it is cut."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(
                method, path, body if isinstance(body, (bytes, str, type(None))) else json.dumps(body), headers
            )
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def metric(self, name: str) -> int:
        text = self.http("GET", "/metrics")[2].decode()
        found = re.search(rf"^{re.escape(name)} (\d+)$", text, re.MULTILINE)
        assert found is not None, name
        return int(found[1])

    def end(self, within_s: float = 10.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)


@contextlib.contextmanager
def gateway(*provider_urls: str, **variables: str) -> Generator[Gateway]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    settings = environment(PORT=str(port), PROVIDER_URLS=",".join(provider_urls), **variables)
    command = [sys.executable, "-m", "voice_gateway"]
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            subject = Gateway(port, process, process.stdout.readline())
            deadline = time.monotonic() + 30
            while True:
                with contextlib.suppress(OSError):
                    if subject.http("GET", "/")[0] == 200:
                        break
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield subject
        finally:
            # Its workers see the end of a pipe, and end too.
            process.kill()
