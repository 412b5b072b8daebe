"""Several workers: processes, or threads where there is no GIL."""

import math
import os
import signal
import socket
import sys
import threading
import time
import traceback
from functools import partial
from types import FrameType

from .program import Gateway
from .variables import ServerConfig
from .worker import BACKLOG, Worker, tune_gc

# What workers may take beyond their drain before they are killed.
_KILL_MARGIN_S = 1.5

# A worker that dies at once is not started again and again at full speed.
_RESPAWN_PAUSE_S = 0.5

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def listen(port: int, workers: int) -> list[socket.socket]:
    """A listening socket for each worker. The kernel spreads connections over them (SO_REUSEPORT).

    They are all made here, before any worker, so a port that is taken is found out at once, and connections that come
    before a worker is ready wait for it.
    """
    if workers > 1:
        # With SO_REUSEPORT a second gateway of the same user would share the port in silence.
        _bind(port, is_shared=False).close()
    listeners = [_bind(port, is_shared=workers > 1) for _ in range(workers)]
    for listener in listeners:
        listener.listen(BACKLOG)
    return listeners


def _bind(port: int, *, is_shared: bool) -> socket.socket:
    # The protocol is named, for asyncio's loop sets TCP_NODELAY only on sockets that say they are TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("0.0.0.0", port))
    listener.setblocking(False)
    return listener


def serve(config: ServerConfig, gateway: Gateway) -> int:
    """Runs the gateway; returns its exit code."""
    try:
        listeners = listen(config.port, config.workers)
    except OSError as error:
        print(f"port {config.port}: {error.strerror}", file=sys.stderr)
        return 1
    tune_gc()
    if config.worker_kind == "threads":
        return _threads(config, gateway, listeners)
    if config.workers == 1:
        Worker(config, listeners[0], partial(gateway.make_service, 0)).run()
        return 0
    return _Processes(config, gateway, listeners).run()


def _threads(config: ServerConfig, gateway: Gateway, listeners: list[socket.socket]) -> int:
    workers = [Worker(config, listener, partial(gateway.make_service, number)) for number, listener in enumerate(listeners)]
    failed = threading.Event()

    def run(worker: Worker) -> None:
        try:
            worker.run()
        except BaseException:  # noqa: BLE001  # a thread's exception ends nothing but the thread
            traceback.print_exc()
            failed.set()
            end()

    def end(_number: int = 0, _frame: FrameType | None = None) -> None:
        for worker in workers:
            worker.drain()

    threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]

    for number in _SIGNALS:
        signal.signal(number, end)
    for thread in threads:
        thread.start()
    for thread in threads:
        # Signal handlers run in the main thread, between two waits.
        while thread.is_alive():
            thread.join(timeout=0.1)
    return int(failed.is_set())


class _Processes:
    """Forks the workers, starts those again that die, and passes the end on."""

    def __init__(self, config: ServerConfig, gateway: Gateway, listeners: list[socket.socket]) -> None:
        self._config = config
        self._gateway = gateway
        self._listeners = listeners
        self._workers: dict[int, int] = {}
        # Its writing end is open in this process alone: workers see its end when we are killed.
        self._lifeline, self._life = os.pipe()

    def run(self) -> int:
        # Blocked, so that they wait for sigwait() and are not lost between two looks.
        watched = {*_SIGNALS, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        for number in range(self._config.workers):
            self._fork(number)
        while (received := signal.sigwait(watched)) not in _SIGNALS:
            assert received == signal.SIGCHLD
            self._replace_dead()
        return self._end()

    def _fork(self, number: int) -> None:
        pid = os.fork()
        if pid:
            self._workers[pid] = number
            return
        # The child must never return into its parent's code.
        code = 1
        try:
            self._work(number)
            code = 0
        except BaseException:  # noqa: BLE001  # there is nobody above to whom it could be left
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _work(self, number: int) -> None:
        os.close(self._life)
        for other, listener in enumerate(self._listeners):
            if other != number:
                listener.close()
        worker = Worker(self._config, self._listeners[number], partial(self._gateway.make_service, number))
        threading.Thread(target=_end_with_parent, args=(self._lifeline, worker), daemon=True).start()
        for sent in _SIGNALS:
            signal.signal(sent, lambda _number, _frame: worker.drain())
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        worker.run()

    def _replace_dead(self) -> None:
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            number = self._workers.pop(pid)
            print(f"worker {number} ended ({os.waitstatus_to_exitcode(status)}), starting it again", file=sys.stderr)
            self._gateway.forget_worker(number)
            time.sleep(_RESPAWN_PAUSE_S)
            self._fork(number)

    def _end(self) -> int:
        # Ours first: while a copy is open, the kernel goes on accepting for it.
        for listener in self._listeners:
            listener.close()
        self._kill(signal.SIGTERM)
        deadline = time.monotonic() + self._config.drain_timeout_s + _KILL_MARGIN_S
        code = 0
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                code = code or int(status != 0)
                del self._workers[pid]
            elif time.monotonic() >= deadline:
                self._kill(signal.SIGKILL)
                deadline = math.inf
            else:
                signal.sigtimedwait({signal.SIGCHLD}, 0.1)
        return code

    def _kill(self, number: signal.Signals) -> None:
        for pid in self._workers:
            os.kill(pid, number)


def _end_with_parent(lifeline: int, worker: Worker) -> None:
    os.read(lifeline, 1)
    worker.drain()
