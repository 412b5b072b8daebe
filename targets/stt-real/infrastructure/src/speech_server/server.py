"""A WebSocket server for sessions that decode elsewhere: admission, health, and the end."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State

from .program import Config

HEALTH_PATH = "/health"

# A message of audio is at most 2 s of 16 kHz; more is a mistake.
MESSAGE_BYTES_MAX = 65_536
# Messages that wait while one is decoded. The socket is left alone beyond that, so a client that is ahead feels it.
MESSAGES_WAITING_MAX = 64
CLOSE_TIMEOUT_S = 5.0

Session = Callable[[ServerConnection], Awaitable[None]]
Refusal = Callable[[Request], Response | None]


class Server:
    """Admits at most `sessions_max` sessions at `path`, and answers the rest of the world with a status."""

    def __init__(self, config: Config, path: str, session: Session, refusal: Refusal) -> None:
        self._config = config
        self._path = path
        self._refusal = refusal
        self._session = session
        self._admitted: set[ServerConnection] = set()

    async def run(self) -> None:
        """Serves until SIGTERM or SIGINT, then closes every session with 1001."""
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        async with serve(
            self._converse,
            "",
            self._config.port,
            process_request=self._admit,
            compression=None,
            ping_interval=None,
            max_size=MESSAGE_BYTES_MAX,
            max_queue=MESSAGES_WAITING_MAX,
            close_timeout=CLOSE_TIMEOUT_S,
        ):
            await ending.wait()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        if path == HEALTH_PATH:
            return connection.respond(HTTPStatus.OK, "ok\n")
        if path != self._path:
            return connection.respond(HTTPStatus.NOT_FOUND, f"sessions are at {self._path}\n")
        refused = self._refusal(request)
        if refused is not None:
            return refused
        # Counted here and not in the handler, because other upgrades may come between the two; and by state, because the
        # handler never runs for a client that goes away before it.
        self._admitted = {other for other in self._admitted if other.state is not State.CLOSED}
        if len(self._admitted) >= self._config.sessions_max:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"all {self._config.sessions_max} sessions are taken\n")
        self._admitted.add(connection)
        return None

    async def _converse(self, connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._session(connection)


def serve_sessions(config: Config, path: str, session: Session, refusal: Refusal = lambda _: None) -> int:
    """Runs a server; returns the exit code. `refusal` may answer an upgrade that cannot be served."""
    try:
        asyncio.run(Server(config, path, session, refusal).run())
    except OSError as error:
        print(f"port {config.port}: {error.strerror}", file=sys.stderr)
        return 1
    return 0
