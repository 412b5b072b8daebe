"""MQTT 5: greeting, and what mosquitto must not drop."""

import itertools
import struct
import time
from pathlib import Path

from peer import NotReady, Peer

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, DISCONNECT = 1, 2, 3, 4, 8, 9, 14
# Mosquitto's own limit of a queue is 1,000 messages; it drops the rest without a word.
MORE_THAN_THE_LIMIT = 1500
# No more open at a time than any server allows.
BATCH = 16


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


class Client(Peer):
    def __init__(self, port: int, host: str = "127.0.0.1", name: str = "", keep: bool = False) -> None:
        """With `keep`: the server keeps subscriptions and messages of this name while it is away."""
        super().__init__(port, host)
        self.packet_ids = itertools.count(1)
        expiry = b"\x05\x11" + struct.pack(">I", 3600) if keep else b"\x00"
        self.packet(CONNECT, 0, text("MQTT") + bytes([5, 0 if keep else 2, 0, 0]) + expiry + text(name))
        reason = self.expect(CONNACK)[1]
        if reason != 0:
            raise NotReady(f"CONNACK says {reason:#x}")

    def packet(self, kind: int, flags: int, body: bytes) -> None:
        size, rest = b"", len(body)
        while rest > 127:
            size, rest = size + bytes([rest % 128 + 128]), rest // 128
        self.send(bytes([kind << 4 | flags]) + size + bytes([rest]) + body)

    def next(self) -> tuple[int, int, bytes]:
        """Kind, flags and body of the next packet."""
        first, size = self.read(1)[0], 0
        for shift in (0, 7, 14, 21):
            digit = self.read(1)[0]
            size |= (digit & 127) << shift
            if digit < 128:
                break
        return first >> 4, first & 15, self.read(size)

    def expect(self, kind: int) -> bytes:
        got, _, body = self.next()
        if got != kind:
            raise NotReady(f"packet {got} instead of {kind}")
        return body

    def subscribe(self, topic: str) -> None:
        self.packet(SUBSCRIBE, 2, struct.pack(">HB", next(self.packet_ids), 0) + text(topic) + b"\x01")
        reason = self.expect(SUBACK)[-1]
        if reason > 2:
            raise NotReady(f"SUBACK says {reason:#x}")

    def publish(self, topic: str, bodies: list[bytes]) -> None:
        """With QoS 1, so many at a time; returns when all are acknowledged."""
        for body in bodies:
            self.packet(PUBLISH, 2, text(topic) + struct.pack(">HB", next(self.packet_ids), 0) + body)
        for _ in bodies:
            self.expect(PUBACK)

    def take(self) -> bytes:
        """The next message, acknowledged: its body."""
        kind, flags, body = self.next()
        if kind != PUBLISH:
            raise NotReady(f"packet {kind} instead of a message")
        body = body[2 + int.from_bytes(body[:2]) :]
        if flags & 6:
            self.packet(PUBACK, 0, body[:2])
            body = body[2:]
        return body[1 + body[0] :]

    def leave(self) -> None:
        self.packet(DISCONNECT, 0, b"")
        self.socket.close()


def kept_for_one_who_is_away(port: int) -> int:
    """Publishes more than the usual limit to a subscriber that is away; how many it gets in order when it is back."""
    away = Client(port, name="away", keep=True)
    away.subscribe("check/queue")
    away.leave()
    with Client(port, name="writer") as writer:
        for start in range(0, MORE_THAN_THE_LIMIT, BATCH):
            numbers = range(start, min(start + BATCH, MORE_THAN_THE_LIMIT))
            writer.publish("check/queue", [str(number).encode() for number in numbers])
    with Client(port, name="away", keep=True) as back:
        for number in range(MORE_THAN_THE_LIMIT):
            try:
                if back.take() != str(number).encode():
                    return number
            except TimeoutError:
                return number
    return MORE_THAN_THE_LIMIT


def seconds_between_reports(port: int) -> float:
    with Client(port, name="reports") as client:
        # This one changes every second. The first is retained and comes at once.
        client.subscribe("$SYS/broker/uptime")
        client.take()
        began = time.monotonic()
        client.take()
        return time.monotonic() - began


def in_force(_level: str, port: int, _data: Path) -> list[tuple[str, object, object]]:
    """Name, expected and actual value of what the level needs."""
    return [
        ("messages kept for a reader that is away", MORE_THAN_THE_LIMIT, kept_for_one_who_is_away(port)),
        ("a report of its own about every second", True, seconds_between_reports(port) < 2.5),
    ]
