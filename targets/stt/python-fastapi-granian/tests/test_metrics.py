"""What workers share, as processes: limits, counters, and their text."""

import os
from collections.abc import Callable

import pytest

from stt_gateway import board
from stt_gateway.board import Board
from stt_gateway.messages import FailureKind
from stt_gateway.metrics import (
    BUFFER_FRAMES,
    DEFERRED,
    ERRORS,
    FLUSH_LATENESS,
    Counter,
    Exposition,
    Gauge,
    create_board,
    open_board,
)
from stt_gateway.session import Deferral

WORKERS = 4
LIMIT = 100
TRIES = 2000


@pytest.fixture(autouse=True)
def _shared_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(board.VARIABLE, create_board(WORKERS))


def in_processes(work: Callable[[Board], None]) -> None:
    children = []
    for _ in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            try:
                work(open_board())
            finally:
                os._exit(0)
        children.append(pid)
    # Their blocks are theirs as long as they are not waited for.
    for pid in children:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    total = open_board()
    check(total)
    for pid in children:
        os.waitpid(pid, 0)


def check(total: Board) -> None:
    assert total.total(Counter.REJECTED) == 0, "more than the limit were seen"
    assert total.total(Gauge.SESSIONS) == LIMIT, "all places are taken in the end"
    assert total.total(Counter.FRAMES) == WORKERS * TRIES * 50, "counters lose nothing"


def test_a_limit_is_exact_and_counters_lose_nothing_over_all_workers() -> None:
    def work(own: Board) -> None:
        taken = 0
        for turn in range(TRIES):
            own.add(Counter.FRAMES, 50)
            if own.take(Gauge.SESSIONS, LIMIT):
                taken += 1
            if own.total(Gauge.SESSIONS) > LIMIT:
                own.add(Counter.REJECTED)
            if taken and turn % 3 == 0:
                own.give_back(Gauge.SESSIONS)
                taken -= 1

    in_processes(work)


def test_no_limit_refuses_nothing() -> None:
    own = open_board()
    assert all(own.take(Gauge.JOBS, 0) for _ in range(1000))
    assert own.total(Gauge.JOBS) == 1000


def test_the_gauges_of_a_dead_worker_are_forgotten_and_its_counters_kept() -> None:
    pid = os.fork()
    if pid == 0:
        dead = open_board()
        dead.take(Gauge.SESSIONS, 2)
        dead.add(Counter.SESSIONS)
        os._exit(0)
    os.waitpid(pid, 0)
    alive = open_board()
    assert alive.total(Gauge.SESSIONS) == 0
    assert alive.total(Counter.SESSIONS) == 1


def test_metrics_are_summed_and_rendered() -> None:
    one, other = open_board(), open_board()
    one.take(Gauge.SESSIONS, 0)
    other.take(Gauge.SESSIONS, 0)
    one.add(Counter.FRAMES, 51)
    other.add(ERRORS[FailureKind.HTTP_5XX], 2)
    one.add(DEFERRED[Deferral.JOBS], 3)
    BUFFER_FRAMES.observe(one, 50)
    BUFFER_FRAMES.observe(other, 501)
    FLUSH_LATENESS.observe(other, 0.0007)
    lines = Exposition(other).render().decode().splitlines()
    for line in (
        "# TYPE stt_sessions gauge",
        "stt_sessions 2.0",
        "# TYPE stt_sessions_total counter",
        "stt_sessions_total 0.0",
        "stt_frames_total 51.0",
        'stt_errors_total{kind="http_5xx",stage="inference_request"} 2.0',
        'stt_errors_total{kind="overflow",stage="input_buffer"} 0.0',
        'stt_ticks_deferred_total{reason="jobs"} 3.0',
        'stt_buffer_frames_bucket{le="20"} 0.0',
        'stt_buffer_frames_bucket{le="50"} 1.0',
        'stt_buffer_frames_bucket{le="500"} 1.0',
        'stt_buffer_frames_bucket{le="+Inf"} 2.0',
        "stt_buffer_frames_sum 551.0",
        "stt_buffer_frames_count 2.0",
        'stt_flush_lateness_seconds_bucket{le="0.001"} 1.0',
        "stt_flush_lateness_seconds_sum 0.0007",
    ):
        assert line in lines
