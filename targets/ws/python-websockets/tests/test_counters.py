"""The counters that workers share."""

import os

from ws_echo.counters import Board, Counter


def test_metrics_are_sums_over_workers_and_complete_from_the_start() -> None:
    board = Board(3)
    board.row(0)[Counter.RECEIVED] += 2
    board.row(2)[Counter.RECEIVED] += 5
    board.row(1)[Counter.RECEIVED_BYTES] += 2**40
    text = board.render()
    assert "\nws_messages_received_total 7\n" in text
    assert f"\nws_bytes_received_total {2**40}\n" in text
    assert "# TYPE ws_connections_open gauge\nws_connections_open 0\n" in text
    assert text.count("# TYPE") == len(Counter)
    assert text.endswith("\n")


def test_a_forked_worker_writes_where_the_others_read() -> None:
    board = Board(2)
    pid = os.fork()
    if pid == 0:
        board.row(1)[Counter.OPEN] = 9
        os._exit(0)
    os.waitpid(pid, 0)
    assert board.total(Counter.OPEN) == 9
    board.forget_open(1)
    assert board.total(Counter.OPEN) == 0
