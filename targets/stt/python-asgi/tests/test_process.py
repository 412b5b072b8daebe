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
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from inference_server import InferenceServer
from support import reference, synthetic_frame

SOURCE = Path(__file__).resolve().parents[1] / "src"

# python-asgi-ft runs these tests with threads.
WORKER_KIND = os.environ.get("TEST_WORKER_KIND", "processes")

START = '{"type":"start"}'


def environment(**variables: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SOURCE),
        "WORKER_KIND": WORKER_KIND,
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

    def connect(self) -> AbstractContextManager[ClientConnection]:
        return connect(f"ws://127.0.0.1:{self.port}/ws/stt", compression=None, proxy=None)

    def status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=3) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=3) as answer:
            text = answer.read().decode()
        return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} "))

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


@contextlib.contextmanager
def gateway(inference_port: int, **variables: str) -> Generator[Gateway]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    settings = environment(PORT=str(port), INFERENCE_URL=f"http://127.0.0.1:{inference_port}", **variables)
    command = [sys.executable, "-m", "stt_gateway"]
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True) as process:
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
            process.kill()


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


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "http"), ("OVERFLOW_POLICY", "Drop_Oldest"), ("WORKER_KIND", "fibres"), ("READ_PACE_MS", "500")],
)
def test_a_bad_value_ends_it_with_2_and_one_line(name: str, value: str) -> None:
    command = [sys.executable, "-m", "stt_gateway"]
    ended = subprocess.run(command, env=environment(**{name: value}), capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert name in line


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no GIL here")
def test_threads_under_a_gil_are_refused() -> None:
    command = [sys.executable, "-m", "stt_gateway"]
    ended = subprocess.run(
        command, env=environment(WORKER_KIND="threads"), capture_output=True, text=True, timeout=20, check=False
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert "GIL" in ended.stderr


def test_a_port_that_is_taken_is_found_out() -> None:
    with InferenceServer() as server, gateway(server.port) as subject:
        ended = subprocess.run(
            [sys.executable, "-m", "stt_gateway"],
            env=environment(PORT=str(subject.port)),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert ended.returncode == 1
        assert f"port {subject.port}" in ended.stderr


def test_sessions_and_the_end() -> None:
    with InferenceServer() as server, gateway(server.port) as subject, contextlib.ExitStack() as stack:
        assert json.loads(subject.start_line)["libraries"]["uvicorn"]
        clients = [stack.enter_context(subject.connect()) for _ in range(8)]
        for number, client in enumerate(clients):
            talk(client, number, 12)
        assert subject.metric("stt_sessions") == 8
        assert subject.metric("stt_jobs_inflight") == 0
        assert subject.metric("stt_partials_total") >= 8
        clients[0].close()
        assert subject.end() == 0
        assert [closed(client) for client in clients[1:]] == [1001] * 7


def test_reading_at_a_pace_changes_nothing_that_a_client_sees() -> None:
    with InferenceServer() as server, gateway(server.port, READ_PACE_MS="250") as subject:
        with subject.connect() as client:
            talk(client, 5, 40)
            # In the middle of a rest.
            begun = time.monotonic()
            client.send(b"odd")
            assert closed(client) == 1003
            assert time.monotonic() - begun < 0.5
        assert subject.end() == 0


def test_a_session_over_the_limit_is_refused_whichever_worker_it_meets() -> None:
    with InferenceServer() as server, gateway(server.port, MAX_SESSIONS="3") as subject, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(subject.connect()) for _ in range(3)]
        for _ in range(12):
            with pytest.raises(InvalidStatus) as refusal, subject.connect():
                pass
            assert refusal.value.response.status_code == 503
            assert refusal.value.response.headers["Retry-After"] == "1"
        assert subject.metric("stt_sessions_rejected_total") == 12
        clients.pop().close()
        time.sleep(0.2)
        stack.enter_context(subject.connect())


@pytest.mark.skipif(WORKER_KIND != "processes", reason="a thread does not die alone")
def test_a_worker_that_dies_is_replaced_and_its_sessions_forgotten() -> None:
    with InferenceServer() as server, gateway(server.port, MAX_SESSIONS="4") as subject, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(subject.connect()) for _ in range(4)]
        children = Path(f"/proc/{subject.process.pid}/task/{subject.process.pid}/children").read_text().split()
        assert len(children) == 2
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        assert {closed(client) for client in clients} <= {None, 1006}
        for number in range(4):
            with subject.connect() as client:
                talk(client, number, 3)
        assert subject.end() == 0
