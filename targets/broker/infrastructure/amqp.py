"""AMQP 0-9-1 as RabbitMQ speaks it: greeting, one confirmed message in a queue of the level's kind."""

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

from peer import NotReady, Peer

METHOD, HEADER, BODY, HEARTBEAT, END = 1, 2, 3, 8, b"\xce"
Method = tuple[int, int]
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
CONNECTION_CLOSE, CHANNEL_OPEN, CHANNEL_OPEN_OK, CHANNEL_CLOSE = (10, 50), (20, 10), (20, 11), (20, 40)
DECLARE, DECLARE_OK, QOS, QOS_OK, CONSUME, CONSUME_OK = (50, 10), (50, 11), (60, 10), (60, 11), (60, 20), (60, 21)
PUBLISH, DELIVER, ACK, CONFIRM, CONFIRM_OK = (60, 40), (60, 60), (60, 80), (85, 10), (85, 11)
PASSIVE, DURABLE = 1, 2

# The queue that the client declares, by level: RabbitMQ's own configuration is the same for all.
KINDS = {"durable": "quorum", "speculative": "classic", "memory": "classic", "stream": "stream"}


def short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def long(text: str) -> bytes:
    return struct.pack(">I", len(text)) + text.encode()


def table(fields: dict[str, str]) -> bytes:
    body = b"".join(short(name) + b"S" + long(value) for name, value in fields.items())
    return struct.pack(">I", len(body)) + body


class Client(Peer):
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__(port, host)
        self.send(b"AMQP\x00\x00\x09\x01")
        self.expect(START)
        self.method(0, START_OK, table({}) + short("PLAIN") + long("\0guest\0guest") + short("en_US"))
        channels, frame_bytes, _ = struct.unpack(">HIH", self.expect(TUNE)[:8])
        self.method(0, TUNE_OK, struct.pack(">HIH", channels, frame_bytes, 0))
        self.method(0, OPEN, short("/") + short("") + b"\0")
        self.expect(OPEN_OK)
        self.method(1, CHANNEL_OPEN, short(""))
        self.expect(CHANNEL_OPEN_OK)

    def frame(self, kind: int, channel: int, body: bytes) -> None:
        self.send(struct.pack(">BHI", kind, channel, len(body)) + body + END)

    def method(self, channel: int, name: Method, arguments: bytes) -> None:
        self.frame(METHOD, channel, struct.pack(">HH", *name) + arguments)

    def next_method(self) -> tuple[Method, bytes]:
        while True:
            kind, _, size = struct.unpack(">BHI", self.read(7))
            body = self.read(size)
            if self.read(1) != END:
                raise NotReady("a frame without its end")
            if kind == METHOD:
                return (int.from_bytes(body[:2]), int.from_bytes(body[2:4])), body[4:]

    def expect(self, name: Method) -> bytes:
        got, arguments = self.next_method()
        if got in (CONNECTION_CLOSE, CHANNEL_CLOSE):
            raise NotReady(f"{int.from_bytes(arguments[:2])} {arguments[3 : 3 + arguments[2]].decode()}")
        if got != name:
            raise NotReady(f"method {got} instead of {name}")
        return arguments

    def declare(self, level: str, passive: bool) -> int:
        """How many messages are ready in the queue of this level."""
        flags = (DURABLE if level != "memory" else 0) | (PASSIVE if passive else 0)
        kind = table({"x-queue-type": KINDS[level]})
        self.method(1, DECLARE, struct.pack(">H", 0) + short("check") + bytes([flags]) + kind)
        answer = self.expect(DECLARE_OK)
        return int.from_bytes(answer[1 + answer[0] :][:4])

    def put(self, level: str) -> None:
        self.declare(level, passive=False)
        self.method(1, CONFIRM, b"\0")
        self.expect(CONFIRM_OK)
        self.method(1, PUBLISH, struct.pack(">H", 0) + short("") + short("check") + b"\0")
        body = b"a message"
        # Of the properties only the delivery mode: 1 is transient, 2 persistent.
        properties = struct.pack(">HB", 0x1000, 1 if level == "memory" else 2)
        self.frame(HEADER, 1, struct.pack(">HHQ", 60, 0, len(body)) + properties)
        self.frame(BODY, 1, body)
        if int.from_bytes(self.expect(ACK)[:8]) != 1:
            raise NotReady("the confirm names another message")

    def count(self, level: str) -> int:
        if level != "stream":
            return self.declare(level, passive=True)
        # A stream has no ready messages. A reader that begins with the first one gets what is there.
        self.method(1, QOS, struct.pack(">IHB", 0, 1, 0))
        self.expect(QOS_OK)
        offset = table({"x-stream-offset": "first"})
        self.method(1, CONSUME, struct.pack(">H", 0) + short("check") + short("") + b"\0" + offset)
        self.expect(CONSUME_OK)
        try:
            self.expect(DELIVER)
        except TimeoutError:
            return 0
        return 1


def refused(ask: Callable[[], object]) -> str:
    """The broker's words if it refuses, else nothing."""
    with contextlib.suppress(ConnectionError):
        try:
            ask()
        except NotReady as no:
            return str(no)
    return ""


def in_force(level: str, port: int, _data: Path) -> list[tuple[str, object, object]]:
    """Name, expected and actual value of what the level needs."""
    other = "stream" if level == "durable" else "durable"
    with Client(port) as client:
        client.declare(level, passive=False)
        # A queue is what it was declared as: the same name with another kind is an error.
        words = refused(lambda: client.declare(other, passive=False))
    return [(f"a {KINDS[level]} queue stays one", True, words.startswith("406 "))]
