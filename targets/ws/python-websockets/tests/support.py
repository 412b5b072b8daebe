"""The server as a process, and frames that a library would not send."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

SOURCE = Path(__file__).resolve().parents[1] / "src"

TEXT, BINARY = 1, 2


class Target:
    """A server that runs."""

    def __init__(self, port: int, process: subprocess.Popen[str], start_line: str) -> None:
        self.port = port
        self.process = process
        self.start_line = start_line

    def connect(self, path: str = "/") -> AbstractContextManager[ClientConnection]:
        # An offer of compression that must not be taken up; no ping of the client's own.
        url = f"ws://127.0.0.1:{self.port}{path}"
        return connect(url, proxy=None, max_size=None, ping_interval=None, close_timeout=1)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=3) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""

    def metric(self, name: str) -> int:
        lines = self.get("/metrics")[1].splitlines()
        return next(int(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))

    def wait_for(self, name: str, value: int) -> None:
        """Until a metric has this value."""
        deadline = time.monotonic() + 5
        while (seen := self.metric(name)) != value:
            assert time.monotonic() < deadline, f"{name} is {seen}, not {value}"
            time.sleep(0.02)

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS:"))

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


def environment(**variables: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), **variables}


COMMAND = [sys.executable, "-m", "ws_echo"]


@contextlib.contextmanager
def target(**variables: str) -> Generator[Target]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    settings = environment(PORT=str(port), **variables)
    with subprocess.Popen(COMMAND, env=settings, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            subject = Target(port, process, process.stdout.readline())
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


def frame(opcode: int, payload: bytes, *, is_final: bool = True, reserved: int = 0, length: int | None = None) -> bytes:
    """A frame with a mask of zeros; `length` is what it declares, if not the truth."""
    length = len(payload) if length is None else length
    head = bytes([is_final << 7 | reserved << 4 | opcode])
    if length < 126:
        head += bytes([0x80 | length])
    elif length < 65_536:
        head += bytes([0x80 | 126]) + length.to_bytes(2, "big")
    else:
        head += bytes([0x80 | 127]) + length.to_bytes(8, "big")
    return head + bytes(4) + payload


def upgrade(raw: socket.socket, path: str) -> None:
    """Makes a plain socket, which nobody reads, a WebSocket."""
    raw.sendall(
        f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += raw.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ")


def closed(client: ClientConnection) -> int | None:
    """The code with which the connection ends."""
    try:
        while True:
            client.recv(5)
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd is not None else None
