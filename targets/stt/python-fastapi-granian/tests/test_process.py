"""The gateway as a process: its start, its sessions over real sockets, its end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from inference_server import InferenceServer
from support import by_id, reference, synthetic_frame, vectors

SOURCE = Path(__file__).resolve().parents[1] / "src"
# python-fastapi-uvicorn runs these tests with uvicorn.
SERVER = os.environ.get("TEST_SERVER", "granian")
COMMAND = [sys.executable, "-m", "stt_gateway", SERVER]
START = '{"type":"start"}'
VIOLATION_CODES = {None, 1002, 1003, 1007, 1008, 1009, 1011}


def environment(**variables: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SOURCE),
        "WORKER_THREADS": "2",
        "FLUSH_INTERVAL_MS": "100",
        "FLUSH_PHASE_JITTER_MS": "50",
        **variables,
    }


class Gateway:
    """A gateway that runs."""

    def __init__(self, port: int, process: subprocess.Popen[str], start_line: str) -> None:
        self.port = port
        self.process = process
        self.start_line = start_line

    def connect(self, path: str = "/ws/stt", token: str | None = None) -> AbstractContextManager[ClientConnection]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return connect(f"ws://127.0.0.1:{self.port}{path}", compression=None, proxy=None, additional_headers=headers)

    def refusal(self, path: str = "/ws/stt", token: str | None = None) -> Any:
        with pytest.raises(InvalidStatus) as refusal, self.connect(path, token):
            pass
        return refusal.value.response

    def status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=3) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=3) as answer:
            text = answer.read().decode()
        return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} "))

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


@contextlib.contextmanager
def gateway(inference_port: int, **variables: str) -> Iterator[Gateway]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    settings = environment(PORT=str(port), INFERENCE_URL=f"http://127.0.0.1:{inference_port}", **variables)
    # A process group of its own, so that no worker outlives a test that fails.
    with subprocess.Popen(COMMAND, env=settings, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            subject = Gateway(port, process, process.stdout.readline())
            deadline = time.monotonic() + 20
            while True:
                with contextlib.suppress(OSError):
                    if subject.status("/health") == 200:
                        break
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield subject
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    with InferenceServer() as server, gateway(server.port) as subject:
        yield subject


def closed(client: ClientConnection) -> int | None:
    """The code with which the connection ends."""
    try:
        while True:
            client.recv(5)
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd is not None else None


def talk(client: ClientConnection, session: int, frames: int) -> None:
    """Sends frames, and checks that they are answered."""
    client.send(START)
    for seq in range(1, frames + 1):
        client.send(synthetic_frame(session, seq))
    named = 0
    while named < frames:
        message = json.loads(client.recv(5))
        assert message["type"] == "partial", message
        assert message["oldest_frame_seq"] == named + 1
        named = message["newest_frame_seq"]
        batch = b"".join(synthetic_frame(session, seq) for seq in range(message["oldest_frame_seq"], named + 1))
        assert message["checksum"] == reference(batch, 4).checksum


@pytest.mark.parametrize(("name", "value"), [("PORT", "http"), ("OVERFLOW_POLICY", "Drop_Oldest")])
def test_a_bad_value_ends_it_with_2_and_one_line(name: str, value: str) -> None:
    settings = environment(**{name: value})
    ended = subprocess.run(COMMAND, env=settings, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert name in line


def test_the_start_line_names_versions(running: Gateway) -> None:
    line = json.loads(running.start_line)
    assert line["runtime"].startswith("CPython 3.")
    assert line["libraries"][SERVER]


@pytest.mark.parametrize(("path", "status"), [("/health", 200), ("/metrics", 200), ("/ws/stt", 426), ("/other", 404)])
def test_requests(running: Gateway, path: str, status: int) -> None:
    assert running.status(path) == status


def test_an_upgrade_of_another_path_is_refused(running: Gateway) -> None:
    assert running.refusal("/ws/other").status_code == 404


@pytest.mark.parametrize("case", vectors("frames"), ids=by_id)
def test_frames(running: Gateway, case: Any) -> None:
    if case["length"] > 65_536:
        pytest.skip("to be refused by its header, which this client does not send alone")
    with running.connect() as client:
        client.send(START)
        payload = " " * case["length"]
        client.send(payload if case["opcode"] == "text" else payload.encode())
        if case["ok"]:
            assert json.loads(client.recv(5))["type"] == "partial"
        else:
            assert closed(client) in VIOLATION_CODES


@pytest.mark.parametrize("message", ["{}", b"\0" * 640], ids=["text", "audio"])
def test_a_session_begins_with_its_start(running: Gateway, message: str | bytes) -> None:
    with running.connect() as client:
        client.send(message)
        assert closed(client) in VIOLATION_CODES


def test_a_start_that_does_not_come_ends_the_session() -> None:
    with InferenceServer() as server, gateway(server.port, START_TIMEOUT_MS="200") as subject, subject.connect() as client:
        assert closed(client) in VIOLATION_CODES


def test_sessions_and_the_end() -> None:
    with InferenceServer() as server, gateway(server.port) as subject, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(subject.connect()) for _ in range(8)]
        for number, client in enumerate(clients):
            talk(client, number, 12)
        assert subject.metric("stt_sessions") == 8
        assert subject.metric("stt_jobs_inflight") == 0
        assert subject.metric("stt_frames_total") == 96
        assert subject.metric("stt_partials_total") >= 8
        clients[0].close()
        assert subject.end() == 0
        assert {closed(client) for client in clients[1:]} <= {1001, 1012}


def test_at_the_end_what_is_in_flight_is_answered() -> None:
    with InferenceServer() as server, gateway(server.port) as subject, subject.connect() as client:
        server.delay_s = 1.0
        client.send(START)
        client.send(synthetic_frame(0, 1))
        while subject.metric("stt_jobs_inflight") == 0:
            time.sleep(0.02)
        subject.process.send_signal(signal.SIGTERM)
        assert json.loads(client.recv(5))["type"] == "partial"
        assert closed(client) in {1001, 1012}
        assert subject.process.wait(5) == 0


def test_a_session_over_the_limit_is_refused_whichever_worker_it_meets() -> None:
    with InferenceServer() as server, gateway(server.port, MAX_SESSIONS="3") as subject, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(subject.connect()) for _ in range(3)]
        for _ in range(12):
            refusal = subject.refusal()
            assert refusal.status_code == 503
            assert refusal.headers["Retry-After"] == "1"
        assert subject.metric("stt_sessions_rejected_total") == 12
        clients.pop().close()
        time.sleep(0.2)
        stack.enter_context(subject.connect())


def test_the_token_is_asked_for_first() -> None:
    with (
        InferenceServer() as server,
        gateway(server.port, AUTH_TOKEN="secret", MAX_SESSIONS="1") as subject,
        subject.connect(token="secret") as client,
    ):
        talk(client, 0, 2)
        for token in (None, "", "other", "secretly"):
            assert subject.refusal(token=token).status_code == 401
        assert subject.refusal(token="secret").status_code == 503


def test_an_overflow_is_named_in_order() -> None:
    with (
        InferenceServer() as server,
        gateway(server.port, MAX_BUFFER_FRAMES="20", FLUSH_INTERVAL_MS="500") as subject,
        subject.connect() as client,
    ):
        client.send(START)
        for seq in range(1, 51):
            client.send(synthetic_frame(0, seq))
        messages = [json.loads(client.recv(5)) for _ in range(2)]
        named = [(message["type"], message["oldest_frame_seq"], message["newest_frame_seq"]) for message in messages]
        assert named == [("error", 1, 30), ("partial", 31, 50)]
        assert subject.metric("stt_frames_dropped_total") == 30
