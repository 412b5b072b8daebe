"""What workers share, as processes and as threads."""

import os
import threading
from collections.abc import Callable

import pytest

from stt_gateway.metrics import render
from stt_gateway.session import Deferral
from stt_gateway.session.messages import FailureKind
from stt_gateway.shared import BUFFER_FRAMES, DEFERRED_AT, ERRORS_AT, FLUSH_LATENESS, Counter, Gauge, Ledger

WORKERS = 4
LIMIT = 100
TRIES = 2000


def in_processes(work: Callable[[int], None]) -> None:
    children = []
    for worker in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            try:
                work(worker)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def in_threads(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("run", [in_processes, in_threads])
def test_a_limit_is_exact_over_all_workers(run: Callable[[Callable[[int], None]], None]) -> None:
    ledger = Ledger(WORKERS)

    def work(worker: int) -> None:
        book = ledger.open(worker)
        taken = 0
        for turn in range(TRIES):
            if book.take(Gauge.SESSIONS, LIMIT):
                taken += 1
            if book.total(Gauge.SESSIONS) > LIMIT:
                book.add(Counter.REJECTED)
            if taken and turn % 3 == 0:
                book.give_back(Gauge.SESSIONS)
                taken -= 1

    run(work)
    book = ledger.open(0)
    assert book.total(Counter.REJECTED) == 0, "more than the limit were seen"
    assert book.total(Gauge.SESSIONS) == LIMIT, "all places are taken in the end"


@pytest.mark.parametrize("run", [in_processes, in_threads])
def test_counters_lose_nothing(run: Callable[[Callable[[int], None]], None]) -> None:
    ledger = Ledger(WORKERS)

    def work(worker: int) -> None:
        book = ledger.open(worker)
        for _ in range(TRIES):
            book.add(Counter.FRAMES, 50)

    run(work)
    assert ledger.open(1).total(Counter.FRAMES) == WORKERS * TRIES * 50


def test_no_limit_takes_no_lock_and_refuses_nothing() -> None:
    book = Ledger(1).open(0)
    assert all(book.take(Gauge.JOBS, 0) for _ in range(1000))
    assert book.total(Gauge.JOBS) == 1000


def test_the_gauges_of_a_dead_worker_are_forgotten_and_its_counters_kept() -> None:
    ledger = Ledger(2)
    dead, alive = ledger.open(0), ledger.open(1)
    assert dead.take(Gauge.SESSIONS, 2)
    assert alive.take(Gauge.SESSIONS, 2)
    dead.add(Counter.SESSIONS)
    ledger.forget_gauges(0)
    assert alive.total(Gauge.SESSIONS) == 1
    assert alive.total(Counter.SESSIONS) == 1


def test_metrics_are_summed_and_rendered() -> None:
    ledger = Ledger(2)
    one, other = ledger.open(0), ledger.open(1)
    one.take(Gauge.SESSIONS, 0)
    other.take(Gauge.SESSIONS, 0)
    one.add(Counter.FRAMES, 51)
    other.add(ERRORS_AT[FailureKind.HTTP_5XX], 2)
    one.add(DEFERRED_AT[Deferral.JOBS], 3)
    one.observe(BUFFER_FRAMES, 51)
    other.observe(BUFFER_FRAMES, 501)
    other.observe_seconds(FLUSH_LATENESS, 0.0007)
    lines = render(other).splitlines()
    for line in (
        "stt_sessions 2",
        "stt_frames_total 51",
        'stt_errors_total{stage="inference_request",kind="http_5xx"} 2',
        'stt_errors_total{stage="input_buffer",kind="overflow"} 0',
        'stt_ticks_deferred_total{reason="jobs"} 3',
        'stt_buffer_frames_bucket{le="50"} 0',
        'stt_buffer_frames_bucket{le="55"} 1',
        'stt_buffer_frames_bucket{le="500"} 1',
        'stt_buffer_frames_bucket{le="+Inf"} 2',
        "stt_buffer_frames_sum 552.0",
        "stt_buffer_frames_count 2",
        'stt_flush_lateness_seconds_bucket{le="0.0005"} 0',
        'stt_flush_lateness_seconds_bucket{le="0.001"} 1',
        "stt_flush_lateness_seconds_sum 0.0007",
    ):
        assert line in lines
