"""A connection to a broker, for the tests: blocking, with a time limit."""

import socket
from typing import Self

WAIT_S = 5.0


class NotReady(Exception):
    """The broker answers, but not as it should. The text says how."""


class Peer:
    """Bytes out, exact numbers of bytes or lines in."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=WAIT_S)
        self.buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, size: int) -> bytes:
        while len(self.buffer) < size:
            self._more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def line(self) -> bytes:
        """Up to the next CR LF, which is left out."""
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self.buffer += data
