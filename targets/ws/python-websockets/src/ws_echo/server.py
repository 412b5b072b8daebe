"""One worker: an event loop, the library's server, the echo and the hub."""

import asyncio
import contextlib
import signal
import socket
from http import HTTPStatus

import uvloop
from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.typing import Data

from .config import Config
from .connection import Connection
from .counters import CONTENT_TYPE, Board, Counter

BACKLOG = 4096

HEALTH_PATH = "/healthz"
METRICS_PATH = "/metrics"
FANOUT_PATH = "/fanout"

# A receiver with more than this unsent loses messages of the hub.
FANOUT_QUEUE_BYTES_MAX = 16 * 1024 * 1024

# What a client may take to answer a close.
CLOSE_TIMEOUT_S = 5.0

# Shares of the drain's time: what clients have to answer their close, and what cut connections have to be gone.
DRAIN_SHARE = 0.8
ABORT_SHARE = 0.1


class Worker:
    """Serves until SIGTERM."""

    def __init__(self, config: Config, listener: socket.socket, board: Board, number: int) -> None:
        self._config = config
        self._listener = listener
        self._board = board
        self._row = board.row(number)
        self._open: set[ServerConnection] = set()
        self._hub: set[ServerConnection] = set()

    def run(self) -> None:
        """Returns when all is closed."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        # A forked worker was born with them blocked, so that none is lost before the lines above.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
        server = await serve(
            self._talk,
            sock=self._listener,
            backlog=BACKLOG,
            compression=None,
            process_request=self._answer,
            process_response=self._note_refusal,
            # Nothing is sent that was not asked for.
            ping_interval=None,
            close_timeout=CLOSE_TIMEOUT_S,
            max_size=self._config.message_bytes_max,
            create_connection=Connection,
        )
        await stop.wait()
        await self._drain(server)

    async def _drain(self, server: Server) -> None:
        # Stops listening, and closes with 1001.
        server.close()
        try:
            async with asyncio.timeout(self._config.drain_timeout_s * DRAIN_SHARE):
                await server.wait_closed()
        except TimeoutError:
            # A client that reads nothing does not even get its close; the library would wait for it.
            for connection in self._open:
                connection.transport.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.drain_timeout_s * ABORT_SHARE):
                    await server.wait_closed()

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """The answer to what is no upgrade, or to one that is refused."""
        path = _path(request)
        if path == HEALTH_PATH:
            return connection.respond(HTTPStatus.OK, "ok")
        if path == METRICS_PATH:
            response = connection.respond(HTTPStatus.OK, self._board.render())
            # Headers are a multimap: one that is set again would be there twice.
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = CONTENT_TYPE
            return response
        if path == FANOUT_PATH and self._config.workers > 1:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "a hub would reach one of several processes only\n")
        return None

    def _note_refusal(self, _connection: ServerConnection, request: Request, response: Response) -> None:
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS and "Upgrade" in request.headers:
            self._row[Counter.REFUSED] += 1

    async def _talk(self, connection: ServerConnection) -> None:
        row = self._row
        row[Counter.ACCEPTED] += 1
        row[Counter.OPEN] += 1
        self._open.add(connection)
        request = connection.request
        try:
            if request is not None and _path(request) == FANOUT_PATH:
                await self._share(connection)
            else:
                await self._echo(connection)
        except ConnectionClosed:
            # Closed by a violation or cut off; the library has answered what there was to answer.
            pass
        finally:
            self._open.discard(connection)
            row[Counter.OPEN] -= 1

    async def _echo(self, connection: ServerConnection) -> None:
        row = self._row
        async for message in connection:
            self._note_received(message)
            # Waits while the client does not read, and so the connection is not read either.
            await connection.send(message)
            row[Counter.SENT] += 1

    async def _share(self, connection: ServerConnection) -> None:
        self._hub.add(connection)
        try:
            async for message in connection:
                self._note_received(message)
                self._fan_out(message)
        finally:
            self._hub.discard(connection)

    def _fan_out(self, message: Data) -> None:
        receivers = [member for member in self._hub if member.state is State.OPEN]
        ready = [member for member in receivers if member.transport.get_write_buffer_size() <= FANOUT_QUEUE_BYTES_MAX]
        broadcast(ready, message)
        self._row[Counter.SENT] += len(ready)
        self._row[Counter.DROPPED] += len(receivers) - len(ready)

    def _note_received(self, message: Data) -> None:
        self._row[Counter.RECEIVED] += 1
        # A text of ASCII, which Python knows of each str, has as many bytes as characters.
        if isinstance(message, str) and not message.isascii():
            message = message.encode()
        self._row[Counter.RECEIVED_BYTES] += len(message)


def _path(request: Request) -> str:
    return request.path.partition("?")[0]
