"""What the application does with the events that the engine hands over: it takes every one, looks at it, and counts it."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

# What `drain_inbound` gives: kind, connection, payload.
Event = tuple[str, str | None, Any]

FANOUT = "fanout"
PING = "ping"


@dataclass(slots=True)
class Tally:
    """What has been handed over. Written by one thread, read by others."""

    # Messages by what the engine made of them: `msg` an object (it has parsed the JSON or the msgpack), `raw` a text that it
    # could not parse, `bin` bytes that it did not look into.
    messages: dict[str, int] = field(default_factory=lambda: {"msg": 0, "raw": 0, "bin": 0})
    # Of the objects, those that are none: msgpack that decodes to a number or a text.
    bare_values: int = 0
    # Of the texts, those that are JSON after all.
    texts_parsed: int = 0
    broadcasts: int = 0
    # Messages that were given to the engine: for a broadcast one for each connection that was open.
    deliveries_asked: int = 0

    @property
    def received(self) -> int:
        """Whole messages that the application was handed."""
        return sum(self.messages.values())


class Engine(Protocol):
    """What the application needs of the engine."""

    def send(self, conn_id: str, data: str) -> None: ...

    def broadcast_all(self, data: str) -> None: ...

    def get_connection_count(self) -> int: ...


class Application:
    """Takes events in the order in which the engine queued them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.tally = Tally()

    def take(self, events: Iterable[Event]) -> None:
        """Handles a batch."""
        messages = self.tally.messages
        for kind, connection, payload in events:
            # Connects, disconnects and presence are counted by the engine.
            if kind not in messages:
                continue
            messages[kind] += 1
            if kind == "msg":
                self._take_object(connection, payload)
            elif kind == "raw":
                self._take_text(payload)

    def _take_object(self, connection: str | None, payload: Any) -> None:
        if not isinstance(payload, dict):
            self.tally.bare_values += 1
            return
        name = payload.get("t")
        if name == FANOUT:
            self._fan_out(payload.get("p"))
        elif name == PING and connection is not None:
            # The engine answers those that are JSON itself; what comes here was msgpack, which it has decoded.
            self.tally.deliveries_asked += 1
            self._engine.send(connection, pong_text(payload.get("p")))

    def _take_text(self, text: str) -> None:
        try:
            json.loads(text)
        except ValueError:
            return
        self.tally.texts_parsed += 1

    def _fan_out(self, payload: Any) -> None:
        self.tally.broadcasts += 1
        self.tally.deliveries_asked += self._engine.get_connection_count()
        self._engine.broadcast_all(fanout_text(payload))


def fanout_text(payload: Any) -> str:
    """The event that all connections get; with the category, which the engine would else write itself."""
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return f'{{"c":"U","t":"{FANOUT}","p":{body}}}'


def pong_text(payload: Any) -> str:
    """What the engine answers to a ping: its timestamp if it is a whole number, else 0."""
    timestamp = payload.get("timestamp") if isinstance(payload, dict) else None
    sent_ms = timestamp if isinstance(timestamp, int) else 0
    now_ms = time.time_ns() // 1_000_000
    body = {"client_timestamp": sent_ms, "server_timestamp": now_ms, "latency": now_ms - sent_ms}
    return json.dumps({"c": "WSE", "t": "PONG", "p": body, "v": 1}, separators=(",", ":"))
