"""Section 4 of docs/ws/contract.md, over real sockets: what the engine does, and what this launcher adds."""

import contextlib
import json
import socket
import subprocess
import time
import zlib
from collections.abc import Generator

import pytest

from support import COMMAND, Target, closed, environment, ping, receive, target, token

# {"t": "trade_update", "p": {}} in msgpack.
MSGPACK = b"\x82\xa1t\xactrade_update\xa1p\x80"

# {"t": "ping", "p": {"timestamp": 5}} in msgpack.
MSGPACK_PING = b"\x82\xa1t\xa4ping\xa1p\x81\xa9timestamp\x05"


@pytest.fixture
def wse() -> Generator[Target]:
    with target() as subject:
        yield subject


def test_the_start_line_names_versions(wse: Target) -> None:
    line = json.loads(wse.start_line)
    assert line["libraries"] == {"wse-server": "2.5.1"}
    assert line["runtime"].startswith("CPython 3.")


def test_health_and_metrics_are_on_a_port_of_their_own(wse: Target) -> None:
    assert wse.get("/healthz") == (200, "ok")
    assert wse.get("/elsewhere")[0] == 404
    assert wse.metric("ws_connections_open") == 0


def test_the_handshake(wse: Target) -> None:
    for headers in ({"Cookie": f"access_token={token()}"}, {"Authorization": f"Bearer {token()}"}):
        with wse.dial(**headers) as client:
            ready = receive(client)
            assert (ready["t"], ready["p"]["details"]["user_id"]) == ("server_ready", "bench-user")
            client.send('{"t":"client_hello","p":{"client_version":"1","protocol_version":1}}')
            hello = receive(client)
            assert hello["t"] == "server_hello"
            assert hello["p"]["limits"]["max_message_size"] == 1_048_576
            assert hello["p"]["ping_interval"] == 25_000
    assert wse.metric("ws_connections_accepted_total") == 2
    wse.wait_for("ws_connections_open", 0)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "AUTH_REQUIRED"),
        ({"Cookie": "access_token=x"}, "AUTH_FAILED"),
        ({"Cookie": f"access_token={token(b'another secret of thirty-two bytes')}"}, "AUTH_FAILED"),
        ({"Cookie": f"access_token={token(aud='others')}"}, "AUTH_FAILED"),
        ({"Cookie": f"access_token={token(sub='')}"}, "AUTH_FAILED"),
    ],
)
def test_a_bad_token_is_refused_after_the_upgrade(wse: Target, headers: dict[str, str], code: str) -> None:
    with wse.dial(**headers) as client:
        error = receive(client)
        assert (error["t"], error["p"]["code"]) == ("error", code)
        assert closed(client) == 4401
    assert wse.metric("ws_connections_refused_total") == 1


def test_a_ping_is_answered_with_its_timestamp(wse: Target) -> None:
    with wse.session() as client:
        for timestamp in (1, 2**62, -5):
            pong = ping(client, timestamp)
            assert (pong["t"], pong["p"]["client_timestamp"]) == ("PONG", timestamp)


def test_what_the_application_is_handed_is_counted(wse: Target) -> None:
    with wse.session() as client:
        for number in range(500):
            client.send(json.dumps({"t": "trade_update", "p": {"seq": number}}))
        for prefixed in ('WSE{"t":"x"}', 'S{"t":"x"}', 'U{"t":"x"}'):
            client.send(prefixed)
        client.send("not JSON")
        client.send("[1]")
        # A ping ends in the engine, and is answered after all that came before it was read.
        assert ping(client, 9)["p"]["client_timestamp"] == 9
        wse.wait_for("ws_messages_received_total", 505)
        assert wse.metric('wse_target_events_total{kind="msg"}') == 503
        assert wse.metric('wse_target_events_total{kind="raw"}') == 2
        assert wse.metric("wse_target_texts_parsed_total") == 1
        # Hello and ping, too.
        assert wse.metric("wse_messages_received_total") == 507
        assert wse.metric("wse_inbound_dropped_total") == 0
        assert wse.metric("ws_bytes_received_total") > 500 * 30


def test_binary_messages_are_opaque_on_a_plain_session(wse: Target) -> None:
    with wse.session() as client:
        for message in (b"M:" + MSGPACK, b"C:" + zlib.compress(b"{}"), MSGPACK):
            client.send(message)
        wse.wait_for('wse_target_events_total{kind="bin"}', 3)


def test_only_msgpack_without_its_prefix_is_decoded_on_a_msgpack_session(wse: Target) -> None:
    with wse.session("&format=msgpack") as client:
        client.send(MSGPACK)
        wse.wait_for('wse_target_events_total{kind="msg"}', 1)
        assert wse.metric("wse_target_bare_values_total") == 0
        client.send(b"M:" + MSGPACK)
        wse.wait_for('wse_target_events_total{kind="msg"}', 2)
        assert wse.metric("wse_target_bare_values_total") == 1


def test_a_ping_in_msgpack_is_decoded_by_the_engine_and_answered_by_the_application(wse: Target) -> None:
    with wse.session("&format=msgpack") as client:
        client.send(MSGPACK_PING)
        pong = receive(client)
        assert (pong["t"], pong["p"]["client_timestamp"]) == ("PONG", 5)
        wse.wait_for("ws_messages_sent_total", 1)
    # On a plain session nobody decodes it.
    with wse.session() as client:
        client.send(MSGPACK_PING)
        assert ping(client, 9)["p"]["client_timestamp"] == 9


def test_a_fan_out_reaches_every_connection_in_order(wse: Target) -> None:
    with wse.session() as one, wse.session() as two, wse.session() as three:
        wse.wait_for("ws_connections_open", 3)
        for number in range(50):
            one.send(json.dumps({"t": "fanout", "p": {"seq": number, "ts_us": 2**53}}))
        for client in (one, two, three):
            for number in range(50):
                message = receive(client)
                assert (message["t"], message["p"]) == ("fanout", {"seq": number, "ts_us": 2**53})
        wse.wait_for("ws_messages_sent_total", 150)
        assert wse.metric("ws_messages_dropped_total") == 0


def test_sigterm_closes_with_1001_and_waits_for_nobody() -> None:
    with target(DRAIN_TIMEOUT_MS="3000") as subject, subject.session() as client:
        begin = time.monotonic()
        subject.terminate()
        assert closed(client) == 1001
        assert subject.process.wait(5) == 0
        assert time.monotonic() - begin < 3
        with pytest.raises(OSError, match=r"refused|reset"), contextlib.closing(subject.dial()):
            pass


def test_whoever_does_not_answer_the_close_is_not_waited_for_and_nobody_new_is_served() -> None:
    with target(DRAIN_TIMEOUT_MS="2000") as subject, subject.mute() as client:
        subject.wait_for("ws_connections_open", 1)
        begin = time.monotonic()
        subject.terminate()
        while subject.get("/healthz")[0] == 200:
            time.sleep(0.01)
        # The port stays open, and whoever comes is reset.
        with contextlib.suppress(OSError), subject.mute() as late:
            assert late.recv(1) == b""
        assert subject.process.wait(5) == 0
        assert time.monotonic() - begin < 2
        assert client.recv(65_536).endswith(b"\x88\x0c\x03\xe9going away")


@pytest.mark.parametrize("name", ["PORT", "METRICS_PORT"])
def test_a_port_that_is_taken_is_exit_code_1(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as other:
        settings = {"PORT": str(other.getsockname()[1]), "METRICS_PORT": str(other.getsockname()[1])}
        settings[name] = str(taken.getsockname()[1])
        other.close()
        result = subprocess.run(COMMAND, env=environment(**settings), capture_output=True, text=True, check=False, timeout=10)
    assert result.returncode == 1
    assert "Address already in use" in result.stderr


def test_a_bad_value_is_exit_code_2() -> None:
    result = subprocess.run(
        COMMAND, env=environment(METRICS_PORT="many"), capture_output=True, text=True, check=False, timeout=10
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("METRICS_PORT=")
    assert len(result.stderr.splitlines()) == 1
