"""The target as a process, and a client of its dialect that shares no code with it."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

SOURCE = Path(__file__).resolve().parents[1] / "src"

COMMAND = [sys.executable, "-m", "wse_target"]

SECRET = b"bench-secret-key-for-testing-only"


def token(secret: bytes = SECRET, **changes: Any) -> str:
    """A JWT (HS256)."""
    now = int(time.time())
    claims = {"sub": "bench-user", "iss": "wse-bench", "aud": "wse-bench", "iat": now, "exp": now + 3600, **changes}
    parts = [_base64(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signature = hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, _base64(signature)])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Target:
    """A target that runs."""

    def __init__(self, ports: tuple[int, int], process: subprocess.Popen[str], start_line: str) -> None:
        self.port, self.metrics_port = ports
        self.process = process
        self.start_line = start_line

    def dial(self, query: str = "", **headers: str) -> ClientConnection:
        """A connection as it is after the upgrade."""
        url = f"ws://127.0.0.1:{self.port}/wse?compression=false&protocol_version=1{query}"
        return connect(url, additional_headers=headers, compression=None, proxy=None, ping_interval=None, close_timeout=1)

    @contextlib.contextmanager
    def session(self, query: str = "") -> Generator[ClientConnection]:
        """A connection whose handshake is done."""
        with self.dial(query, Cookie=f"access_token={token()}") as client:
            assert receive(client)["t"] == "server_ready"
            client.send('{"t":"client_hello","p":{"client_version":"1","protocol_version":1}}')
            assert receive(client)["t"] == "server_hello"
            yield client

    @contextlib.contextmanager
    def mute(self) -> Generator[socket.socket]:
        """A plain socket that asks for an upgrade and then answers nothing, not even a close."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as raw:
            raw.sendall(
                "GET /wse HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: access_token={token()}\r\n\r\n".encode()
            )
            yield raw

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=3) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""

    def metric(self, name: str) -> int:
        lines = self.get("/metrics")[1].splitlines()
        return next(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith(f"{name} "))

    def wait_for(self, name: str, value: int) -> None:
        """Until a metric has this value."""
        deadline = time.monotonic() + 5
        while (seen := self.metric(name)) != value:
            assert time.monotonic() < deadline, f"{name} is {seen}, not {value}"
            time.sleep(0.02)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


def environment(**variables: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), **variables}


@contextlib.contextmanager
def target(**variables: str) -> Generator[Target]:
    with socket.socket() as one, socket.socket() as two:
        for unused in (one, two):
            unused.bind(("127.0.0.1", 0))
        ports = one.getsockname()[1], two.getsockname()[1]
    settings = environment(PORT=str(ports[0]), METRICS_PORT=str(ports[1]), **variables)
    with subprocess.Popen(COMMAND, env=settings, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            subject = Target(ports, process, process.stdout.readline())
            deadline = time.monotonic() + 20
            while True:
                with contextlib.suppress(OSError):
                    if subject.get("/healthz") == (200, "ok"):
                        break
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield subject
        finally:
            process.kill()


def receive(client: ClientConnection) -> dict[str, Any]:
    """The next message, which is a JSON object in a text."""
    text = client.recv(5)
    assert isinstance(text, str)
    message = json.loads(text)
    assert isinstance(message, dict)
    return message


def ping(client: ClientConnection, timestamp: int) -> dict[str, Any]:
    """What the server says to an application ping."""
    client.send(json.dumps({"t": "ping", "p": {"timestamp": timestamp}}))
    return receive(client)


def closed(client: ClientConnection) -> int | None:
    """The code with which the connection ends."""
    try:
        while True:
            client.recv(5)
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd is not None else None
