"""Fibril's protocol: the greeting."""

import struct
from pathlib import Path

from peer import NotReady, Peer

HELLO, HELLO_OK, AUTH, AUTH_OK, ERROR = 1, 2, 10, 11, 255


def text(value: str) -> bytes:
    return struct.pack(">I", len(value)) + value.encode()


class Client(Peer):
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__(port, host)
        self.ask(HELLO, HELLO_OK, b"FHL1" + text("check") + text("1") + struct.pack(">H", 1) + b"\0")
        self.ask(AUTH, AUTH_OK, b"FAU1" + text("fibril") + text("fibril"))

    def ask(self, opcode: int, answer: int, payload: bytes) -> None:
        self.send(struct.pack(">IHHIQ", len(payload), 1, opcode, 0, opcode) + payload)
        size, _, got, _, _ = struct.unpack(">IHHIQ", self.read(20))
        said = self.read(size)
        if got != answer:
            raise NotReady(f"opcode {got} instead of {answer}: {said!r}")


def in_force(_level: str, _port: int, _data: Path) -> list[tuple[str, object, object]]:
    """A queue's level is the broker's own; a stream's is what the client declares."""
    return []
