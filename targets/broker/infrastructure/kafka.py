"""Kafka's protocol: greeting, one record, settings. Only versions of requests without tagged fields."""

import struct
import time
from pathlib import Path

from peer import NotReady, Peer

PRODUCE, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS, DESCRIBE_CONFIGS = 0, 2, 3, 18, 19, 32
TOPIC, BROKER = 2, 4
# What a topic's leader says while it is being made or after a start.
UNKNOWN_TOPIC, NO_LEADER, NOT_LEADER, NO_BROKER = 3, 5, 6, 8
PATIENCE_S = 30
# Kafka's default: never.
NEVER = str(2**63 - 1)


def string(text: str | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text)) + text.encode()


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def crc32c(data: bytes) -> int:
    """CRC-32C, which Python's library does not have."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(number: int) -> bytes:
    """Zigzag, as records have it."""
    rest, out = number << 1 ^ number >> 63, b""
    while rest > 127:
        out, rest = out + bytes([rest & 127 | 128]), rest >> 7
    return out + bytes([rest])


def record_batch(value: bytes) -> bytes:
    """A batch of one record without a key."""
    record = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    now = time.time_ns() // 1_000_000
    batch = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + varint(len(record)) + record
    checked = struct.pack(">ibI", -1, 2, crc32c(batch)) + batch
    return struct.pack(">qi", 0, len(checked)) + checked


class Fields:
    """Reads an answer."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f">{kind}", self.data, self.at)
        self.at += struct.calcsize(kind)
        return int(value)

    def string(self) -> str | None:
        size = self.number("h")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size : self.at].decode()


class Client(Peer):
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__(port, host)
        self.asked = 0
        refusal = self.ask(API_VERSIONS, 0, b"").number("h")
        if refusal:
            raise NotReady(f"ApiVersions: error {refusal}")
        # A broker that has not joined its own cluster yet lists nobody.
        if self.ask(METADATA, 1, array()).number("i") == 0:
            raise NotReady("Metadata lists no broker")

    def ask(self, api: int, version: int, body: bytes) -> Fields:
        self.asked += 1
        request = struct.pack(">hhi", api, version, self.asked) + string("check") + body
        self.send(struct.pack(">i", len(request)) + request)
        answer = Fields(self.read(int.from_bytes(self.read(4))))
        if answer.number("i") != self.asked:
            raise NotReady("an answer to another request")
        return answer

    def make_topic(self) -> None:
        topic = string("check") + struct.pack(">ih", 1, 1) + array() + array()
        answer = self.ask(CREATE_TOPICS, 2, array(topic) + struct.pack(">i?", 10_000, False))
        answer.number("i"), answer.number("i"), answer.string()
        refusal, why = answer.number("h"), answer.string()
        if refusal:
            raise NotReady(f"CreateTopics: error {refusal}, {why}")

    def put(self, _level: str) -> None:
        self.make_topic()
        records = record_batch(b"a message")
        partition = struct.pack(">ii", 0, len(records)) + records
        body = string(None) + struct.pack(">hi", -1, 10_000) + array(string("check") + array(partition))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.ask(PRODUCE, 3, body)
            answer.number("i"), answer.string(), answer.number("i"), answer.number("i")
            refusal = answer.number("h")
            if refusal == 0:
                return
            if refusal not in (UNKNOWN_TOPIC, NO_LEADER, NOT_LEADER) or time.monotonic() > deadline:
                raise NotReady(f"Produce: error {refusal}")
            time.sleep(0.1)

    def count(self, _level: str) -> int:
        partition = struct.pack(">iq", 0, -1)
        body = struct.pack(">i", -1) + array(string("check") + array(partition))
        answer = self.ask(LIST_OFFSETS, 1, body)
        answer.number("i"), answer.string(), answer.number("i"), answer.number("i")
        refusal = answer.number("h")
        if refusal:
            raise NotReady(f"ListOffsets: error {refusal}")
        answer.number("q")
        return answer.number("q")

    def configs(self, kind: int, name: str) -> dict[str, str | None]:
        resource = struct.pack(">b", kind) + string(name) + struct.pack(">i", -1)
        answer = self.ask(DESCRIBE_CONFIGS, 1, array(resource) + b"\0")
        answer.number("i"), answer.number("i")
        refusal, why = answer.number("h"), answer.string()
        if refusal:
            raise NotReady(f"DescribeConfigs: error {refusal}, {why}")
        answer.number("b"), answer.string()
        found = {}
        for _ in range(answer.number("i")):
            key = answer.string()
            found[key or ""] = answer.string()
            answer.number("b"), answer.number("b"), answer.number("b")
            for _ in range(answer.number("i")):
                answer.string(), answer.string(), answer.number("b")
        return found


def in_force(level: str, port: int, data: Path) -> list[tuple[str, object, object]]:
    """Name, expected and actual value of what the level needs."""
    with Client(port) as client:
        broker = client.configs(BROKER, "1")
    return [
        ("log.flush.interval.messages", "1" if level == "durable" else NEVER, broker["log.flush.interval.messages"]),
        ("log.dirs in DATA_DIR", True, Path(broker["log.dirs"] or "/").is_relative_to(data)),
        ("offsets.topic.replication.factor", "1", broker["offsets.topic.replication.factor"]),
        ("auto.create.topics.enable", "false", broker["auto.create.topics.enable"]),
    ]
