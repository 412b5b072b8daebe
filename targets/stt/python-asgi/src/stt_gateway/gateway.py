"""What the sessions of one worker share."""

import asyncio
import hmac
from typing import Any

from .config import Config
from .inference import Client
from .session import Rules
from .shared import Book, Counter, Gauge


class Gateway:
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
            model_delay_ms=config.model_delay_ms,
        )
        connections = -(-config.inference_connections // config.workers)
        self.inference = Client(config.inference_url, connections, config.inference_timeout_s, config.cpu_passes)
        # The server's set: it asks all in it to shut down, and waits until they are gone.
        self.connections: set[Any] = set()
        self.is_draining = False
        self._token = f"Bearer {config.auth_token}".encode() if config.auth_token else None

    def is_authorized(self, authorization: str | None) -> bool:
        """Whether the `Authorization` field has the token, if one is demanded; takes the same time wherever it differs."""
        return self._token is None or hmac.compare_digest((authorization or "").encode(), self._token)

    def admit(self) -> bool:
        """Takes a place for a session, unless there is none."""
        if not self.book.take(Gauge.SESSIONS, self.config.sessions_max):
            self.book.add(Counter.REJECTED)
            return False
        self.book.add(Counter.SESSIONS)
        return True
