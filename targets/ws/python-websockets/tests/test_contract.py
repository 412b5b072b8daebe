"""The contract of docs/ws/contract.md, over real sockets."""

import json
import socket
import subprocess
import time
from collections.abc import Generator, Sequence

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection

from support import BINARY, COMMAND, TEXT, Target, closed, environment, frame, target, upgrade

LIMIT = 1_048_576


@pytest.fixture(scope="module")
def echo() -> Generator[Target]:
    with target() as subject:
        yield subject


def test_the_start_line_names_versions(echo: Target) -> None:
    line = json.loads(echo.start_line)
    assert line["runtime"].startswith("CPython 3.")
    assert set(line["libraries"]) == {"websockets", "uvloop"}


def test_messages_come_back_as_they_were(echo: Target) -> None:
    messages: list[str | bytes] = [
        "",
        b"",
        "grüße",
        "x" * 125,
        b"\x00\xff",
        b"y" * 126,
        "z" * 65_536,
        bytes(LIMIT),
        "ü" * (LIMIT // 2),
    ]
    with echo.connect("/any/path?query=1") as client:
        assert client.protocol.extensions == []
        for message in messages:
            client.send(message)
        assert [client.recv(5) for _ in messages] == messages


def test_fragments_come_back_whole_and_a_ping_between_them_is_answered(echo: Target) -> None:
    with echo.connect() as client:
        client.socket.sendall(frame(TEXT, "hä".encode()[:2], is_final=False))
        assert client.ping("between").wait(5)
        client.socket.sendall(frame(0, "hä".encode()[2:]))
        assert list(client.recv_streaming()) == ["hä"]


def test_messages_are_counted() -> None:
    with target() as subject:
        with subject.connect() as client:
            for message in ("abc", "ü", b"12345"):
                client.send(message)
                client.recv(5)
            subject.wait_for("ws_messages_sent_total", 3)
            assert subject.metric("ws_messages_received_total") == 3
            assert subject.metric("ws_bytes_received_total") == 10
            assert subject.metric("ws_connections_open") == 1
        subject.wait_for("ws_connections_open", 0)
        assert subject.metric("ws_connections_accepted_total") == 1


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ((frame(TEXT, b"\xc3\x28"),), 1007),
        ((frame(TEXT, b"\xc3", is_final=False), frame(0, b"\x28")), 1007),
        ((frame(BINARY, b"", length=LIMIT + 1),), 1009),
        ((frame(BINARY, bytes(LIMIT), is_final=False), frame(0, b"1")), 1009),
        ((frame(BINARY, b"", reserved=4),), 1002),
        ((frame(3, b""),), 1002),
        ((frame(0, b"x"),), 1002),
        ((frame(9, b"", is_final=False),), 1002),
        ((b"\x81\x01x",), 1002),
    ],
)
def test_violations_are_closed_with_their_code(echo: Target, frames: Sequence[bytes], code: int) -> None:
    with echo.connect() as client:
        for each in frames:
            client.socket.sendall(each)
        assert closed(client) == code


def test_a_close_is_answered(echo: Target) -> None:
    with echo.connect() as client:
        client.socket.sendall(frame(8, (3000).to_bytes(2, "big")))
        assert closed(client) == 3000


def test_other_requests(echo: Target) -> None:
    assert echo.get("/healthz") == (200, "ok")
    assert echo.get("/")[0] == 426
    # None of them has asked for a WebSocket.
    refused = echo.metric("ws_connections_refused_total")
    with socket.create_connection(("127.0.0.1", echo.port)) as raw:
        raw.sendall(
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 400 ")
    echo.wait_for("ws_connections_refused_total", refused + 1)


def test_a_client_that_does_not_read_is_not_read_from_and_loses_nothing() -> None:
    message = bytes(range(256)) * 64
    with target() as subject, subject.connect() as client:
        idle_mib = subject.rss_mib()
        # The client's own threads read; a plain socket beside it does not.
        sent = 0
        with socket.create_connection(("127.0.0.1", subject.port)) as raw:
            upgrade(raw, "/")
            one = frame(BINARY, message)
            raw.settimeout(1)
            rest = b""
            while not rest:
                rest = send_until_blocked(raw, one)
                sent += 1
                assert sent * len(one) < 64 * 1024 * 1024, "it reads on and on"
            assert subject.rss_mib() - idle_mib < 16
            # Others are served meanwhile.
            client.send("still here")
            assert client.recv(5) == "still here"
            read_echoes(raw, rest, sent, message)


@pytest.mark.parametrize("path", ["/", "/fanout"])
def test_pongs_for_a_client_that_does_not_read_are_bounded(path: str) -> None:
    with target() as subject, socket.create_connection(("127.0.0.1", subject.port)) as raw:
        upgrade(raw, path)
        idle_mib = subject.rss_mib()
        # A message among them, which the hub takes whether or not its sender reads.
        many = frame(9, bytes(125)) * 1000 + frame(TEXT, b"x")
        raw.settimeout(1)
        sent = 0
        while not send_until_blocked(raw, many):
            sent += len(many)
            assert sent < 64 * 1024 * 1024, "it reads on and on"
        assert subject.rss_mib() - idle_mib < 16


def send_until_blocked(raw: socket.socket, data: bytes) -> bytes:
    """What could not be written within the socket's timeout."""
    try:
        while data:
            data = data[raw.send(data) :]
    except TimeoutError:
        return data
    return b""


def read_echoes(raw: socket.socket, rest: bytes, count: int, message: bytes) -> None:
    """Reads all echoes, while the rest of the last message is written."""
    expected = b"\x82\x7e" + len(message).to_bytes(2, "big") + message
    raw.settimeout(5)
    seen = bytearray()
    echoes = 0
    while echoes < count:
        seen += raw.recv(1 << 20)
        while len(seen) >= len(expected):
            assert seen[: len(expected)] == expected
            del seen[: len(expected)]
            echoes += 1
        if rest and echoes > count // 2:
            raw.sendall(rest)
            rest = b""
    assert not seen


def test_the_hub_reaches_all_in_order() -> None:
    with (
        target() as subject,
        subject.connect("/fanout") as one,
        subject.connect("/fanout") as two,
        subject.connect() as other,
    ):
        subject.wait_for("ws_connections_open", 3)
        for number in range(100):
            (one if number % 3 else two).send(f"{number}")
            # The next sender has seen it, so this is the order of arrival.
            assert one.recv(5) == f"{number}"
            assert two.recv(5) == f"{number}"
        one.send(b"\x00\x01")
        assert two.recv(5) == b"\x00\x01"
        other.send("alone")
        assert other.recv(5) == "alone"
        subject.wait_for("ws_messages_sent_total", 203)
        assert subject.metric("ws_messages_dropped_total") == 0


def test_a_slow_receiver_of_the_hub_loses_messages_and_the_others_none() -> None:
    payload = bytes(256 * 1024)
    count = 240
    with target() as subject, socket.create_connection(("127.0.0.1", subject.port)) as slow:
        upgrade(slow, "/fanout")
        with subject.connect("/fanout") as publisher:
            subject.wait_for("ws_connections_open", 2)
            idle_mib = subject.rss_mib()
            for number in range(count):
                publisher.send(number.to_bytes(4, "big") + payload)
                received = publisher.recv(5)
                assert isinstance(received, bytes)
                assert int.from_bytes(received[:4], "big") == number
            assert subject.metric("ws_messages_dropped_total") > 0
            assert subject.metric("ws_messages_sent_total") + subject.metric("ws_messages_dropped_total") == 2 * count
            assert subject.rss_mib() - idle_mib < 32


def test_several_processes_count_together_and_have_no_hub() -> None:
    with target(WORKER_THREADS="2") as subject:
        clients = [subject.connect() for _ in range(8)]
        opened: list[ClientConnection] = [client.__enter__() for client in clients]
        for client in opened:
            client.send("hello")
            assert client.recv(5) == "hello"
        subject.wait_for("ws_messages_sent_total", 8)
        assert subject.metric("ws_connections_open") == 8
        with pytest.raises(InvalidStatus) as refused, subject.connect("/fanout"):
            pass
        assert refused.value.response.status_code == 503
        assert subject.metric("ws_connections_refused_total") == 1
        subject.terminate()
        assert [closed(client) for client in opened] == [1001] * 8
        assert subject.process.wait(5) == 0


def test_sigterm_closes_with_1001_and_waits_for_nobody() -> None:
    with (
        target(DRAIN_TIMEOUT_MS="3000") as subject,
        subject.connect() as client,
        socket.create_connection(("127.0.0.1", subject.port)) as silent,
    ):
        # It has not even asked for an upgrade.
        silent.sendall(b"GET / HTTP/1.1\r\n")
        begin = time.monotonic()
        subject.terminate()
        assert closed(client) == 1001
        assert subject.process.wait(5) == 0
        assert time.monotonic() - begin < 3


def test_a_bad_value_is_exit_code_2() -> None:
    result = subprocess.run(
        COMMAND, env=environment(MAX_MESSAGE_BYTES="many"), capture_output=True, text=True, check=False, timeout=10
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("MAX_MESSAGE_BYTES=")
    assert len(result.stderr.splitlines()) == 1
