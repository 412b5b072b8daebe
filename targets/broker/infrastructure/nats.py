"""NATS and its JetStream: greeting, one stored message, settings."""

import http.client
import json
import urllib.parse
from pathlib import Path
from typing import Any

from peer import NotReady, Peer

INBOX = "_INBOX.test"
# What the client asks for, by level: the server's configuration is only half of it.
STREAMS = {"memory": {"storage": "memory"}, "async": {"storage": "file", "persist_mode": "async"}}


class Client(Peer):
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__(port, host)
        info = self.line()
        if not info.startswith(b"INFO "):
            raise NotReady(f"{info!r} instead of INFO")
        options = b'{"verbose": false, "headers": true, "no_responders": true, "protocol": 1}'
        self.send(b"CONNECT " + options + b"\r\nPING\r\n")
        while (line := self.line()) != b"PONG":
            if line.startswith(b"-ERR"):
                raise NotReady(line.decode())
        self.send(f"SUB {INBOX} 1\r\n".encode())
        self.ask("$JS.API.INFO", b"")

    def ask(self, subject: str, body: bytes) -> dict[str, Any]:
        """A request; the answer, which must not be an error."""
        self.send(f"PUB {subject} {INBOX} {len(body)}\r\n".encode() + body + b"\r\n")
        while True:
            words = self.line().split()
            if words[0] in (b"MSG", b"HMSG"):
                answer = self.read(int(words[-1]) + 2)
                if words[0] == b"HMSG":
                    raise NotReady(f"{subject}: {answer.split()[:2]}")
                said: dict[str, Any] = json.loads(answer)
                if "error" in said:
                    raise NotReady(f"{subject}: {said['error']['description']}")
                return said
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] == b"-ERR":
                raise NotReady(b" ".join(words).decode())

    def put(self, level: str) -> None:
        stream = {"name": "check", "subjects": ["check"], "retention": "workqueue", "num_replicas": 1}
        stream |= STREAMS.get(level, {"storage": "file"})
        made = self.ask("$JS.API.STREAM.CREATE.check", json.dumps(stream).encode())
        wrong = {key: value for key, value in STREAMS.get(level, {}).items() if made["config"].get(key) != value}
        if wrong:
            raise NotReady(f"the stream was made without {wrong}")
        if self.ask("check", b"a message")["seq"] != 1:
            raise NotReady("the message is not the first one")

    def count(self, _level: str) -> int:
        return int(self.ask("$JS.API.STREAM.INFO.check", b"")["state"]["messages"])


def in_force(level: str, _port: int, data: Path) -> list[tuple[str, object, object]]:
    """Name, expected and actual value of what the level needs."""
    (ports,) = data.glob("*.ports")
    (monitoring,) = json.loads(ports.read_text())["monitoring"]
    where = urllib.parse.urlsplit(monitoring)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 0, timeout=5)
    try:
        connection.request("GET", "/varz")
        varz = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    config = varz["jetstream"]["config"]
    always = level == "durable"
    settings: list[tuple[str, object, object]] = [
        ("sync after every write", always, config.get("sync_always", False)),
        ("max_payload", 8 * 1024 * 1024, varz["max_payload"]),
        ("store_dir in DATA_DIR", True, Path(config["store_dir"]).is_relative_to(data)),
    ]
    if not always:
        settings.append(("sync_interval in ns", 120_000_000_000, config.get("sync_interval")))
    return settings
