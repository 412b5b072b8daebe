"""The server as a process, and sockets that write what no client would."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

COMMAND = [sys.executable, "-m", "http_granian"]
WAIT_S = 10.0


def environment(**variables: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parent.parent / "src"), **variables}


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


class Answer:
    """A response that has been read."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.fields = response.headers
        self.body = response.read()


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> Answer:
    connection.request(method, path, body)
    return Answer(connection.getresponse())


def read_all(connection: socket.socket) -> bytes:
    chunks = []
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65_536):
            chunks.append(chunk)
    return b"".join(chunks)


class Target:
    """The server, ready."""

    def __init__(self, **variables: str) -> None:
        self.port = free_port()
        env = environment(PORT=str(self.port), **variables)
        self.process = subprocess.Popen(COMMAND, env=env, stdout=subprocess.PIPE)
        assert self.process.stdout
        self.start_line = self.process.stdout.readline()
        deadline = time.monotonic() + WAIT_S
        while self.status("/healthz") != 200:
            if time.monotonic() > deadline:
                self.process.kill()
                raise TimeoutError("it does not get ready")
            time.sleep(0.02)

    def connect(self) -> contextlib.closing[http.client.HTTPConnection]:
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S))

    def socket(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def get(self, path: str) -> Answer:
        with self.connect() as connection:
            return ask(connection, "GET", path)

    def status(self, path: str) -> int:
        """0 where nobody listens."""
        try:
            return self.get(path).status
        except OSError:
            return 0

    def raw(self, *parts: bytes) -> bytes:
        """Writes one after another; what comes back until the server closes."""
        with self.socket() as connection:
            for part in parts:
                connection.sendall(part)
                time.sleep(0.005)
            return read_all(connection)

    def requests_total(self) -> int:
        lines = self.get("/metrics").body.decode().splitlines()
        return int(lines[1].removeprefix("http_requests_total "))

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


@contextlib.contextmanager
def target(**variables: str) -> Iterator[Target]:
    subject = Target(**variables)
    try:
        yield subject
    finally:
        # Its workers end with it: SIGKILL would leave them.
        if subject.process.poll() is None:
            subject.terminate()
        subject.process.communicate(timeout=WAIT_S)
