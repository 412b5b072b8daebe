"""What the sessions of one worker share."""

import asyncio
from collections.abc import Callable
from typing import Any

from gateway_common.auth import BearerToken
from gateway_common.ledger import Book

from .app import make_app
from .config import Config
from .inference import Client
from .session import Rules
from .shared import Counter, Gauge

LIBRARIES = (
    *("uvicorn", "fastapi", "starlette", "pydantic", "uvloop", "httptools", "h11"),
    *("websockets", "h2", "hpack", "hyperframe"),
)


class Service:
    """One worker's part of the gateway; made inside its event loop."""

    def __init__(self, config: Config, book: Book) -> None:
        self.config = config
        self.book = book
        self.loop = asyncio.get_running_loop()
        self.rules = Rules(
            flush_interval_s=config.flush_interval_s,
            buffer_frames_max=config.buffer_frames_max,
            overflow_policy=config.overflow_policy,
            outbox_messages_max=config.outbox_messages_max,
            cpu_passes=config.cpu_passes,
        )
        self.inference = Client(
            config.inference_url, config.inference_connections, config.inference_timeout_s, config.cpu_passes
        )
        # The server's set: it asks all in it to shut down, and waits until they are gone.
        self.connections: set[Any] = set()
        self.is_draining = False
        self.token = BearerToken(config.auth_token)
        self.app = make_app(self)
        self.end_timeout_s = config.drain_timeout_s + 1

    def serve_with(self, connections: set[Any]) -> None:
        self.connections = connections

    def drain(self, end: Callable[[], None]) -> None:
        """No more connections; what is in flight is answered."""
        self.is_draining = True
        end()

    async def close(self) -> None:
        self.inference.close()

    def admit(self) -> bool:
        """Takes a place for a session, unless there is none."""
        if not self.book.take(Gauge.SESSIONS, self.config.sessions_max):
            self.book.add(Counter.REJECTED)
            return False
        self.book.add(Counter.SESSIONS)
        return True
