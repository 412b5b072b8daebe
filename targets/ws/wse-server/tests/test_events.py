"""The application, without the engine."""

import json
from typing import Any

import pytest

from wse_target.events import Application, Event, fanout_text
from wse_target.metrics import render, samples

ENGINE = """# HELP wse_connections Current active WebSocket connections
# TYPE wse_connections gauge
wse_connections 3
# TYPE wse_uptime_seconds gauge
wse_uptime_seconds 12.5
wse_connections_accepted_total 5
wse_connections_rejected_total 2
wse_messages_received_total 99
wse_bytes_received_total 1234
wse_slow_consumer_drops_total 1
wse_topic_messages_total{topic="a b"} 7
"""


class Recorder:
    """An engine that only remembers."""

    def __init__(self, connections: int) -> None:
        self.connections = connections
        self.broadcasts: list[str] = []
        self.sent: list[tuple[str, str]] = []

    def send(self, conn_id: str, data: str) -> None:
        self.sent.append((conn_id, data))

    def broadcast_all(self, data: str) -> None:
        self.broadcasts.append(data)

    def get_connection_count(self) -> int:
        return self.connections


def application(connections: int = 3) -> tuple[Application, Recorder]:
    engine = Recorder(connections)
    return Application(engine), engine


def msg(payload: Any) -> Event:
    return ("msg", "id", payload)


def test_every_message_is_counted_by_what_the_engine_made_of_it() -> None:
    subject, engine = application()
    subject.take([("auth_connect", "id", "user"), msg({"t": "trade_update", "p": {}}), msg(77), msg({})])
    subject.take([("raw", "id", "[1,2]"), ("raw", "id", "{no"), ("bin", "id", b"M:\x80"), ("disconnect", "id", None)])
    tally = subject.tally
    assert tally.messages == {"msg": 3, "raw": 2, "bin": 1}
    assert (tally.received, tally.bare_values, tally.texts_parsed, tally.broadcasts) == (6, 1, 1, 0)
    assert (engine.broadcasts, engine.sent) == ([], [])


def test_a_fan_out_is_broadcast_with_its_payload() -> None:
    subject, engine = application(connections=4)
    payload = {"seq": 7, "text": 'grüße "'}
    subject.take([msg({"t": "fanout", "p": payload}), msg({"t": "fanout"})])
    assert [json.loads(text) for text in engine.broadcasts] == [
        {"c": "U", "t": "fanout", "p": payload},
        {"c": "U", "t": "fanout", "p": None},
    ]
    assert (subject.tally.broadcasts, subject.tally.deliveries_asked) == (2, 8)


@pytest.mark.parametrize(
    ("payload", "timestamp"),
    [({"timestamp": -5}, -5), ({"timestamp": 2**62}, 2**62), ({"timestamp": "5"}, 0), ({}, 0), (None, 0), (7, 0)],
)
def test_a_ping_that_the_engine_hands_over_is_answered_to_its_sender(payload: Any, timestamp: int) -> None:
    subject, engine = application()
    subject.take([msg({"t": "ping", "p": payload})])
    [(connection, text)] = engine.sent
    pong = json.loads(text)
    assert (connection, pong["c"], pong["t"], pong["v"]) == ("id", "WSE", "PONG", 1)
    assert pong["p"]["client_timestamp"] == timestamp
    assert pong["p"]["latency"] == pong["p"]["server_timestamp"] - timestamp
    assert (subject.tally.received, subject.tally.deliveries_asked) == (1, 1)


def test_the_category_stands_first() -> None:
    assert fanout_text({"seq": 1}) == '{"c":"U","t":"fanout","p":{"seq":1}}'


def test_metrics_have_the_names_of_the_contract_and_the_engines_own() -> None:
    subject, _ = application(connections=3)
    subject.take([msg({"t": "fanout", "p": {}}), ("bin", "id", b"")])
    text = render(subject.tally, ENGINE)
    found = samples(text)
    expected = {
        "ws_connections_open": 3,
        "ws_connections_accepted_total": 5,
        "ws_connections_refused_total": 2,
        "ws_messages_received_total": 2,
        "ws_bytes_received_total": 1234,
        "ws_messages_sent_total": 2,
        "ws_messages_dropped_total": 1,
        "wse_messages_received_total": 99,
        "wse_uptime_seconds": 12,
    }
    assert {name: found[name] for name in expected} == expected
    assert 'wse_target_events_total{kind="bin"} 1\n' in text
    assert text.endswith(ENGINE)
