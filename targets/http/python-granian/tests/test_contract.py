"""The contract of workload `http`, over real sockets."""

import json
import re
import subprocess
import time
import zlib
from collections.abc import Iterator

import pytest

from support import COMMAND, Target, ask, environment, read_all, target

LIMIT = 1_048_576
PATTERN = b"0123456789abcdef" * (LIMIT // 16)


def get(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *fields, "", ""]).encode()


def post(body: bytes, path: str = "/sum") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def sum_of(body: bytes) -> bytes:
    return b"%08x %d" % (zlib.crc32(body), len(body))


LAST = get("/", "Connection: close")
CHUNKED = b"POST /sum HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def subject() -> Iterator[Target]:
    with target() as started:
        yield started


def test_the_start_line_names_versions(subject: Target) -> None:
    line = json.loads(subject.start_line)
    assert line["runtime"].startswith("CPython 3.")
    assert set(line["libraries"]) == {"granian", "uvloop"}


@pytest.mark.parametrize("path", ["/", "/?query=1", "/healthz"])
def test_root_and_health_with_their_fields(subject: Target, path: str) -> None:
    answer = subject.get(path)
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.fields["content-type"] == "text/plain"
    assert answer.fields["content-length"] == "2"
    assert answer.fields["date"].endswith(" GMT")


def test_bytes_of_every_size(subject: Target) -> None:
    with subject.connect() as connection:
        for size in (1, 2, 15, 16, 17, 4096, 65_536, LIMIT - 1, LIMIT):
            answer = ask(connection, "GET", f"/bytes/{size}")
            assert (answer.status, answer.body) == (200, PATTERN[:size])
            assert answer.fields["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("size", ["0", "01", "+1", "-1", "1.0", "1e2", "", "x", "1048577", "99999999999999999999"])
def test_other_sizes_are_not_found(subject: Target, size: str) -> None:
    assert subject.status(f"/bytes/{size}") == 404


@pytest.mark.parametrize("number", [0, 1, 4711, 2**53 - 1])
def test_items_as_json(subject: Target, number: int) -> None:
    answer = subject.get(f"/json/{number}")
    even = "false" if number % 2 else "true"
    assert answer.body.decode() == f'{{"id":{number},"name":"item {number}","even":{even}}}'
    assert answer.fields["content-type"] == "application/json"
    assert subject.status(f"/json/{2**53}") == 404


@pytest.mark.parametrize("body", [b"", b"123456789", PATTERN])
def test_sums(subject: Target, body: bytes) -> None:
    with subject.connect() as connection:
        assert ask(connection, "POST", "/sum", body).body == sum_of(body)


def test_a_chunked_body_is_summed(subject: Target) -> None:
    answer = subject.raw(CHUNKED + b"3\r\nabc\r\n2;e=1\r\nde\r\n0\r\n\r\n" + LAST)
    assert sum_of(b"abcde") in answer


def test_what_is_over_the_limit_is_refused(subject: Target) -> None:
    announced = f"POST /sum HTTP/1.1\r\nHost: a\r\nContent-Length: {LIMIT + 1}\r\n\r\n"
    assert subject.raw(announced.encode()).startswith(b"HTTP/1.1 413 ")
    chunk = b"100000\r\n" + PATTERN + b"\r\n"
    assert subject.raw(CHUNKED + chunk, b"1\r\nx\r\n0\r\n\r\n", LAST).startswith(b"HTTP/1.1 413 ")
    assert subject.status("/") == 200


@pytest.mark.parametrize("rest", [b"zz\r\n", b"3\r\nabcXX0\r\n\r\n"])
def test_a_broken_body_is_not_summed(subject: Target, rest: bytes) -> None:
    assert subject.raw(CHUNKED + b"3\r\nabc\r\n" + rest).startswith(b"HTTP/1.1 500 ")


def test_a_request_without_host_is_refused(subject: Target) -> None:
    assert subject.raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_head_and_others_leave_the_connection(subject: Target) -> None:
    heads = [get(path).replace(b"GET", b"HEAD") for path in ("/", "/bytes/1048576", "/json/7", "/none")]
    answers = subject.raw(b"".join([*heads, get("/none"), post(b"abc", "/"), get("/sum"), LAST]))
    assert re.findall(rb"HTTP/1\.1 ([0-9]+)", answers) == [b"200", b"200", b"200", b"404", b"404", b"405", b"405", b"200"]
    assert len(re.findall(rb"^date: ", answers, re.MULTILINE)) == 8
    assert b"content-length: 1048576\r\n" in answers
    assert b"transfer-encoding" not in answers
    assert answers.endswith(b"\r\n\r\nok")


def test_h2c_on_the_same_port(subject: Target) -> None:
    url = f"http://127.0.0.1:{subject.port}/json/8"
    command = ["curl", "--silent", "--http2-prior-knowledge", "--write-out", " %{http_version}", url]
    answer = subprocess.run(command, capture_output=True, check=True, timeout=10)
    assert answer.stdout == b'{"id":8,"name":"item 8","even":true} 2'


def test_a_connection_serves_a_thousand_in_order(subject: Target) -> None:
    sizes = [number % 16 + 1 for number in range(999)]
    before = subject.requests_total()
    answers = subject.raw(b"".join(get(f"/bytes/{size}") for size in sizes) + LAST)
    bodies = re.split(rb"HTTP/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n", answers)[1:]
    assert bodies == [*(PATTERN[:size] for size in sizes), b"ok"]
    assert subject.requests_total() == before + 1001


def test_get_post_get_in_one_write_and_in_pieces(subject: Target) -> None:
    answers = subject.raw(get("/bytes/3") + post(b"abc") + LAST)
    parts = (rb"\r\n\r\n012HTTP", sum_of(b"abc") + b"HTTP", rb"\r\n\r\nok$")
    assert re.search(rb".*".join(parts), answers, re.DOTALL)
    request = post(b"abc")
    for at in range(1, len(request), 7):
        assert sum_of(b"abc") in subject.raw(request[:at], request[at:] + LAST)


def test_http_1_0_is_answered_and_closed(subject: Target) -> None:
    assert subject.raw(b"GET / HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\nok")


def test_two_workers_count_together() -> None:
    with target(WORKER_THREADS="2") as started:
        before = started.requests_total()
        for _ in range(40):
            assert started.status("/") == 200
        assert started.requests_total() == before + 41
        started.terminate()
        assert started.process.wait(5) == 0


def test_sigterm_waits_for_what_is_in_flight() -> None:
    with target() as started, started.socket() as idle, started.socket() as busy:
        idle.sendall(get("/"))
        request = post(b"x" * 1000)
        busy.sendall(request[:-500])
        time.sleep(0.2)
        began = time.monotonic()
        started.terminate()
        time.sleep(0.3)
        busy.sendall(request[-500:])
        answer = read_all(busy)
        assert answer.endswith(sum_of(b"x" * 1000))
        assert b"connection: close\r\n" in answer.lower()
        assert read_all(idle).endswith(b"ok")
        assert started.process.wait(5) == 0
        assert time.monotonic() - began < 3
        assert started.status("/") == 0


def test_sigterm_waits_for_nobody_longer() -> None:
    with target(DRAIN_TIMEOUT_MS="2000") as started, started.socket() as silent:
        silent.sendall(post(b"abc")[:-1])
        time.sleep(0.2)
        began = time.monotonic()
        started.terminate()
        assert started.process.wait(5) == 0
        assert time.monotonic() - began < 2


@pytest.mark.parametrize("name", ["PORT", "WORKER_THREADS", "DRAIN_TIMEOUT_MS", "MAX_BODY_BYTES"])
def test_a_bad_value_is_exit_code_2(name: str) -> None:
    env = environment(**{name: "many\nmore"})
    result = subprocess.run(COMMAND, env=env, capture_output=True, text=True, check=False, timeout=10)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{name}=")
    assert len(result.stderr.splitlines()) == 1
