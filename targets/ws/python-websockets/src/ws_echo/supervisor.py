"""One worker in this process, or several in processes under it."""

import os
import signal
import socket
import sys
import threading
import time
import traceback

from .config import Config
from .counters import Board
from .server import Worker

# Workers end within nine tenths of the drain's time (server.py); who has not, is killed.
_KILL_SHARE = 0.95

# A worker that dies at once is not started again and again at full speed.
_RESPAWN_PAUSE_S = 0.5

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(config: Config) -> int:
    """Serves; returns the exit code."""
    try:
        listeners = _listen(config.port, config.workers)
    except OSError as error:
        print(f"port {config.port}: {error.strerror}", file=sys.stderr)
        return 1
    board = Board(config.workers)
    if config.workers == 1:
        Worker(config, listeners[0], board, 0).run()
        return 0
    return _Processes(config, board, listeners).run()


def _listen(port: int, workers: int) -> list[socket.socket]:
    """A listening socket for each worker; the kernel spreads connections over them (SO_REUSEPORT).

    All are made before any worker, so a port that is taken is found out at once.
    """
    if workers > 1:
        # With SO_REUSEPORT a second server of the same user would share the port in silence.
        _bind(port, is_shared=False).close()
    return [_bind(port, is_shared=workers > 1) for _ in range(workers)]


def _bind(port: int, *, is_shared: bool) -> socket.socket:
    # The protocol is named, for event loops set TCP_NODELAY only on sockets that say they are TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("", port))
    listener.setblocking(False)
    return listener


class _Processes:
    """Forks the workers, starts those again that die, and passes the end on."""

    def __init__(self, config: Config, board: Board, listeners: list[socket.socket]) -> None:
        self._config = config
        self._board = board
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
        while signal.sigwait(watched) == signal.SIGCHLD:
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
        threading.Thread(target=_end_with_parent, args=(self._lifeline,), daemon=True).start()
        Worker(self._config, self._listeners[number], self._board, number).run()

    def _replace_dead(self) -> None:
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            number = self._workers.pop(pid)
            print(f"worker {number} ended ({os.waitstatus_to_exitcode(status)}), starting it again", file=sys.stderr)
            self._board.forget_open(number)
            time.sleep(_RESPAWN_PAUSE_S)
            self._fork(number)

    def _end(self) -> int:
        # Ours first: while a copy is open, the kernel goes on accepting for it.
        for listener in self._listeners:
            listener.close()
        self._kill(signal.SIGTERM)
        deadline = time.monotonic() + self._config.drain_timeout_s * _KILL_SHARE
        code = 0
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                code = code or int(status != 0)
                del self._workers[pid]
            elif time.monotonic() >= deadline:
                # To be cut off at the end of the drain is what the contract asks for, and no failure.
                self._kill(signal.SIGKILL)
                break
            else:
                signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        return code

    def _kill(self, number: signal.Signals) -> None:
        for pid in self._workers:
            os.kill(pid, number)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
