"""What the sessions of one worker share, and the drain."""

import asyncio
import secrets
import signal
from collections.abc import Coroutine
from typing import Any

from .config import Settings
from .inference import Inference
from .metrics import Counter, Exposition, Gauge, open_board

# What sessions may take for their closes, beyond DRAIN_TIMEOUT_MS.
_CLOSE_MARGIN_S = 0.25


class Gateway:
    """One worker's part of the gateway; made inside its event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.board = open_board()
        self.exposition = Exposition(self.board)
        self.inference = Inference(settings)
        self.draining = asyncio.Event()
        # The tasks of open sessions.
        self.sessions: set[asyncio.Task[Any]] = set()
        self._background: set[asyncio.Task[None]] = set()
        token = settings.auth_token.get_secret_value()
        self._authorization = f"Bearer {token}".encode() if token else None

    def is_authorized(self, authorization: str) -> bool:
        """Whether the header has the token; takes the same time wherever it differs."""
        return self._authorization is None or secrets.compare_digest(authorization.encode(), self._authorization)

    def admit(self) -> bool:
        """Takes a place for a session, unless MAX_SESSIONS are open in the whole gateway."""
        if self.board.take(Gauge.SESSIONS, self.settings.max_sessions):
            self.board.add(Counter.SESSIONS)
            return True
        self.board.add(Counter.REJECTED)
        return False

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs work that may outlive the session that began it."""
        task = asyncio.create_task(work)
        # The loop itself keeps no task alive.
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def drain(self) -> None:
        """SIGTERM: no more sessions, and then the server ends."""
        if not self.draining.is_set():
            self.draining.set()
            self.spawn(self._end())

    async def _end(self) -> None:
        if self.sessions:
            await asyncio.wait(self.sessions, timeout=self.settings.drain_timeout_ms / 1000 + _CLOSE_MARGIN_S)
        # Granian and uvicorn end on SIGINT as they do on SIGTERM, which is ours.
        signal.raise_signal(signal.SIGINT)

    async def aclose(self) -> None:
        """The server has ended."""
        for task in self._background:
            task.cancel()
        await self.inference.aclose()
