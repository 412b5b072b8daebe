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
from typing import Any, Protocol

import uvicorn

from .handshake import Handshake
from .variables import ServerConfig

BACKLOG = 4096

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Service(Protocol):
    """One worker's part of a gateway."""

    @property
    def app(self) -> Any:
        """The ASGI application."""

    @property
    def end_timeout_s(self) -> float:
        """How long what is in flight may take, once the server has been told to end."""

    def serve_with(self, connections: set[Any]) -> None:
        """Gets the server's set of connections: it asks all in it to shut down, and waits until they are gone."""

    def drain(self, end: Callable[[], None]) -> None:
        """The gateway is to end: calls `end` when the server may close its listener. Called once."""

    async def close(self) -> None:
        """The server has ended."""


def loop_factory(event_loop: str) -> LoopFactory:
    """uvloop's event loops where it is installed, unless another was asked for."""
    if event_loop == "asyncio" or (event_loop == "auto" and not _is_installed("uvloop")):
        return asyncio.new_event_loop
    import uvloop

    return uvloop.new_event_loop


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Server(uvicorn.Server):
    """uvicorn's server, with an end that the gateway decides on."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._is_draining = False

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """uvicorn would raise the signal again after a clean end, and so not exit with 0."""
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.drain)
        yield

    def drain(self) -> None:
        """Ends the server when its service lets it. Called in its loop."""
        if not self._is_draining:
            self._is_draining = True
            self._service.drain(self._end)

    def _end(self) -> None:
        self.should_exit = True


class Worker:
    """Runs a server until it is told to end."""

    def __init__(self, config: ServerConfig, listener: socket.socket, make_service: Callable[[], Service]) -> None:
        self._config = config
        self._listener = listener
        self._make_service = make_service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._is_ending = False

    def run(self) -> None:
        """Serves; returns when all has been drained."""
        with asyncio.Runner(loop_factory=loop_factory(self._config.event_loop)) as runner:
            runner.run(self._serve())

    def drain(self) -> None:
        """Tells the worker to end; from any thread."""
        self._is_ending = True
        if self._loop is not None and self._server is not None:
            # A loop that has ended meanwhile needs no telling.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._server.drain)

    async def _serve(self) -> None:
        service = self._make_service()
        server = Server(
            uvicorn.Config(
                service.app,
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
                timeout_graceful_shutdown=math.ceil(service.end_timeout_s),
            ),
            service,
        )
        service.serve_with(server.server_state.connections)
        self._loop, self._server = asyncio.get_running_loop(), server
        if self._is_ending:
            server.drain()
        try:
            await server.serve(sockets=[self._listener])
        finally:
            await service.close()


def tune_gc() -> None:
    """What lives as long as the process is not looked at again, and shared pages stay shared after a fork.

    A message makes no object that the collector tracks, or some that die at once by their reference counts. With the
    default threshold of 700 the collector would run every few hundred of them to find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)
