"""One worker: an event loop with uvicorn, its socket, its sessions."""

import asyncio
import contextlib
import gc
import importlib.util
import math
import signal
import socket
import threading
from collections.abc import Callable, Generator

import uvicorn

from .app import make_app
from .config import Config
from .gateway import Gateway
from .handshake import Handshake
from .shared import Book

BACKLOG = 4096

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loop_factory(config: Config) -> LoopFactory:
    """uvloop's event loops where it is installed, unless another was asked for."""
    if config.event_loop == "asyncio" or (config.event_loop == "auto" and not _is_installed("uvloop")):
        return asyncio.new_event_loop
    import uvloop

    return uvloop.new_event_loop


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Server(uvicorn.Server):
    """uvicorn's server, with an end that this gateway decides on."""

    gateway: Gateway | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """uvicorn would raise the signal again after a clean end, and so not exit with 0."""
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.drain)
        yield

    def drain(self) -> None:
        """Ends the server: no more connections, what is in flight is answered. Called in its loop."""
        if self.gateway is not None:
            self.gateway.is_draining = True
        self.should_exit = True


class Worker:
    """Runs a server until it is told to end."""

    def __init__(self, config: Config, listener: socket.socket, open_book: Callable[[], Book]) -> None:
        self._config = config
        self._listener = listener
        self._open_book = open_book
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._is_ending = False

    def run(self) -> None:
        """Serves; returns when all has been drained."""
        with asyncio.Runner(loop_factory=loop_factory(self._config)) as runner:
            runner.run(self._serve())

    def drain(self) -> None:
        """Tells the worker to end; from any thread."""
        self._is_ending = True
        if self._loop is not None and self._server is not None:
            # A loop that has ended meanwhile needs no telling.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._server.drain)

    async def _serve(self) -> None:
        config = self._config
        gateway = Gateway(config, self._open_book())
        server = Server(
            uvicorn.Config(
                make_app(gateway),
                http="httptools" if _is_installed("httptools") else "h11",
                ws=Handshake,
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                # Sessions see to the time-out themselves; this is for whatever else hangs.
                timeout_graceful_shutdown=math.ceil(config.drain_timeout_s) + 1,
            )
        )
        server.gateway = gateway
        gateway.connections = server.server_state.connections
        self._loop, self._server = gateway.loop, server
        if self._is_ending:
            server.drain()
        try:
            await server.serve(sockets=[self._listener])
        finally:
            gateway.inference.close()


def tune_gc() -> None:
    """What lives as long as the process is not looked at again, and shared pages stay shared after a fork.

    A frame makes no object that the collector tracks, a flush makes some dozens that die at once by their reference
    counts. With the default threshold of 700 the collector would run every few hundred flushes to find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)
