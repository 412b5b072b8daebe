"""The contract of workload `http` for finished programs, over real sockets. Run in the target's folder.

    python3 contract_test.py TARGET
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import unittest
from collections.abc import Iterator
from pathlib import Path

WAIT_S = 10
DRAIN_MS = 3000
PATTERN = b"0123456789abcdef"
ALL_BYTES = (64, 1024, 16384, 65536, 1048576)

NAME = sys.argv.pop(1) if len(sys.argv) > 1 else ""
MANIFEST = tomllib.loads(Path("target.toml").read_text())
SIZES = MANIFEST.get("body_bytes", ALL_BYTES)
STOP = signal.Signals[f"SIG{MANIFEST['run'].get('stop_signal', 'TERM')}"]


def expected(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def spawn(**variables: str) -> subprocess.Popen[bytes]:
    environment = {"PATH": os.environ["PATH"], **variables}
    return subprocess.Popen(["sh", "run.sh"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Server:
    """The program, ready to serve."""

    def __init__(self, **variables: str) -> None:
        self.port = free_port()
        self.h2_port = free_port() if MANIFEST.get("h2_port") else self.port
        if MANIFEST.get("h2_port"):
            variables["H2_PORT"] = str(self.h2_port)
        self.process = spawn(PORT=str(self.port), DRAIN_TIMEOUT_MS=str(DRAIN_MS), **variables)
        assert self.process.stdout
        self.start_line = self.process.stdout.readline()
        deadline = time.monotonic() + WAIT_S
        while self.status("/healthz") != 200:
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.process.kill()
                raise AssertionError(f"it does not get ready: {self.process.communicate()}")
            time.sleep(0.01)

    @contextlib.contextmanager
    def connect(self) -> Iterator[http.client.HTTPConnection]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)) as connection:
            yield connection

    def status(self, path: str) -> int:
        """0 where nobody listens."""
        try:
            with self.connect() as connection:
                return ask(connection, "GET", path)[0].status
        except OSError:
            return 0

    def raw(self, data: bytes) -> bytes:
        """What comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as connection:
            connection.sendall(data)
            return read_all(connection)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(STOP)
        self.process.communicate(timeout=WAIT_S)


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request(method, path, body)
    response = connection.getresponse()
    return response, response.read()


def read_all(connection: socket.socket) -> bytes:
    chunks = []
    while chunk := connection.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)


@contextlib.contextmanager
def server(**variables: str) -> Iterator[Server]:
    subject = Server(**variables)
    try:
        yield subject
    finally:
        subject.end()


class Serving(unittest.TestCase):
    """One program for all of these."""

    subject: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.subject = Server()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.subject.end()

    def test_the_start_line_names_versions(self) -> None:
        line = json.loads(self.subject.start_line)
        self.assertEqual(line["target"], NAME)
        self.assertRegex(line["runtime"], r"^[a-z]+ [0-9]+\.[0-9]+")
        self.assertEqual((line["port"], line["worker_threads"]), (self.subject.port, 1))

    def test_root_with_its_fields(self) -> None:
        with self.subject.connect() as connection:
            for method in ("GET", "HEAD", "GET"):
                response, body = ask(connection, method, "/?query=1")
                self.assertEqual(response.status, 200)
                self.assertTrue(response.headers["content-type"].startswith("text/plain"))
                self.assertEqual(response.headers["content-length"], "2")
                self.assertIsNotNone(response.headers["date"])
                self.assertIsNone(response.headers["transfer-encoding"])
                self.assertEqual(body, b"" if method == "HEAD" else b"ok")

    def test_bytes_of_every_size(self) -> None:
        with self.subject.connect() as connection:
            for size in SIZES:
                response, body = ask(connection, "GET", f"/bytes/{size}")
                self.assertEqual((response.status, body), (200, expected(size)), size)
                self.assertEqual(response.headers["content-type"], "application/octet-stream")
                self.assertEqual(response.headers["content-length"], str(size))
                head, body = ask(connection, "HEAD", f"/bytes/{size}")
                self.assertEqual((head.status, head.headers["content-length"], body), (200, str(size), b""))

    def test_other_paths_and_methods_leave_the_connection(self) -> None:
        with self.subject.connect() as connection:
            self.assertEqual(ask(connection, "GET", "/healthz")[1], b"ok")
            first = connection.sock
            for path in ("/none", "/bytes/", "/bytes/0", "/bytes/65", "/bytes/064", "/bytes/x", "/bytes/2097152"):
                response, _ = ask(connection, "GET", path)
                self.assertEqual((path, response.status), (path, 404))
                self.assertIsNotNone(response.headers["content-length"])
            for method, path in (("DELETE", "/"), ("POST", "/"), ("PUT", "/bytes/64"), ("POST", "/none")):
                body = b"a body" if method != "DELETE" else None
                response, _ = ask(connection, method, path, body)
                self.assertIn(response.status, (404, 405), (method, path))
            self.assertEqual(ask(connection, "GET", "/")[1], b"ok")
            self.assertIs(connection.sock, first)

    def test_a_connection_serves_a_thousand_requests(self) -> None:
        with self.subject.connect() as connection:
            ask(connection, "GET", "/")
            first = connection.sock
            # The one before makes it a thousand, which is nginx's own limit.
            for _ in range(999):
                self.assertEqual(ask(connection, "GET", "/")[1], b"ok")
            if MANIFEST.get("variant") != "default":
                self.assertEqual(ask(connection, "GET", "/")[1], b"ok")
                self.assertIs(connection.sock, first)

    def test_pipelined_requests_are_answered_in_order(self) -> None:
        paths = ["/", "/bytes/64", "/bytes/1024", "/none", "/"]
        requests = [f"GET {path} HTTP/1.1\r\nHost: a\r\n".encode() for path in paths]
        answers = self.subject.raw(b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
        self.assertEqual(answers.count(b"HTTP/1.1 "), len(paths))
        self.assertIn(b"\r\n\r\nok" + b"HTTP/1.1 200", answers)
        self.assertIn(b"\r\n\r\n" + expected(64) + b"HTTP/1.1 200", answers)
        self.assertIn(b"\r\n\r\n" + expected(1024) + b"HTTP/1.1 404", answers)
        self.assertTrue(answers.endswith(b"\r\n\r\nok"))

    def test_a_request_may_come_in_pieces(self) -> None:
        request = b"GET /bytes/64 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.subject.port), timeout=WAIT_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in request:
                connection.sendall(bytes([byte]))
                time.sleep(0.001)
            self.assertTrue(read_all(connection).endswith(expected(64)))

    def test_h2c_by_prior_knowledge(self) -> None:
        url = f"http://127.0.0.1:{self.subject.h2_port}"
        for path, body in (("/", b"ok"), ("/bytes/1024", expected(1024))):
            answer = subprocess.run(
                ["curl", "--silent", "--http2-prior-knowledge", "--write-out", " %{http_version} %{http_code}", url + path],
                capture_output=True, check=True, timeout=WAIT_S,
            )
            self.assertEqual(answer.stdout, body + b" 2 200")


class Life(unittest.TestCase):
    """Each with a program of its own."""

    def test_it_ends_with_an_answer_in_flight(self) -> None:
        size = SIZES[-1]
        with server() as subject:
            # More than the kernel's buffers hold. The client reads none of it before the end begins.
            count = 64 * 1024 * 1024 // size
            request = f"GET /bytes/{size} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
            idle = socket.create_connection(("127.0.0.1", subject.port), timeout=WAIT_S)
            with idle, socket.create_connection(("127.0.0.1", subject.port), timeout=WAIT_S) as connection:
                connection.sendall(request * min(count, 500))
                time.sleep(0.3)
                began = time.monotonic()
                subject.process.send_signal(STOP)
                time.sleep(0.3)
                answers = read_all(connection)
                # Whole answers, and one at least.
                heads = answers.count(b"HTTP/1.1 200 OK\r\n")
                self.assertGreater(heads, 0)
                self.assertTrue(answers.endswith(expected(size)))
            self.assertEqual(subject.process.wait(WAIT_S), 0)
            self.assertLess(time.monotonic() - began, DRAIN_MS / 1000)
            self.assertEqual(subject.status("/healthz"), 0)

    def test_a_client_that_does_not_read_does_not_hold_the_end_up(self) -> None:
        size = SIZES[-1]
        with server() as subject:
            with socket.create_connection(("127.0.0.1", subject.port), timeout=WAIT_S) as connection:
                request = f"GET /bytes/{size} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
                connection.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    for _ in range(20000):
                        connection.send(request)
                time.sleep(0.3)
                began = time.monotonic()
                subject.process.send_signal(STOP)
                subject.process.wait(WAIT_S)
                self.assertLess(time.monotonic() - began, DRAIN_MS / 1000)

    def test_two_workers_serve(self) -> None:
        with server(WORKER_THREADS="2") as subject:
            for _ in range(20):
                self.assertEqual(subject.status("/"), 200)

    def test_two_run_at_a_time(self) -> None:
        with server() as one, server() as other:
            self.assertEqual((one.status("/"), other.status("/")), (200, 200))

    def test_a_bad_value_is_exit_code_2_and_one_line(self) -> None:
        bad = (
            ("PORT", "65536"), ("PORT", ""), ("PORT", "80x"), ("WORKER_THREADS", "0"), ("DRAIN_TIMEOUT_MS", "1.5"),
            ("MAX_BODY_BYTES", "many\nmore"), ("H2_PORT", "99999"),
        )
        for name, value in bad:
            process = spawn(**{name: value})
            output, errors = process.communicate(timeout=WAIT_S)
            self.assertEqual((process.returncode, output), (2, b""), (name, value))
            self.assertTrue(errors.startswith(f"{name}=".encode()), errors)
            self.assertEqual(len(errors.splitlines()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
