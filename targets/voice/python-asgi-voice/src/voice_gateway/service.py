"""What the sessions of one worker share."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from gateway_common.variables import BaseUrl

from .admission import Admission
from .app import make_app
from .config import Config
from .conversation import Conversation
from .hearing import Hearing
from .shared import Gauge, Share
from .speech import Speaker
from .voices import Voices

LIBRARIES: Final = (
    *("uvicorn", "fastapi", "starlette", "pydantic", "uvloop", "httptools", "h11"),
    *("websockets", "aiohttp", "yarl", "multidict"),
)

_DRAIN_LOOK_S: Final = 0.02
# For closes that have been sent to arrive, after the last session.
_END_S: Final = 1.0


class Service:
    """One worker's part of the gateway; made inside its event loop."""

    def __init__(self, config: Config, share: Share) -> None:
        self.config = config
        self.book = share.book
        self.loop = asyncio.get_running_loop()
        self.admission = Admission(config, share)
        self.speaker = Speaker(config, share.book)
        self.voices = Voices(config, self.speaker.http, share.voices)
        # The server's set: it waits until those in it are gone.
        self.connections: set[Any] = set()
        self.conversations: set[Conversation] = set()
        # Requests to speak over HTTP, in flight.
        self.requests: set[asyncio.Task[Any]] = set()
        self.end_timeout_s = _END_S
        self._requests_begun = 0
        self._background: set[asyncio.Task[None]] = set()
        self.app = make_app(self)

    def serve_with(self, connections: set[Any]) -> None:
        self.connections = connections

    def provider_url(self, turn: int) -> BaseUrl:
        """The base of the providers whose turn it is."""
        urls = self.config.provider_urls
        return urls[turn % len(urls)]

    def next_turn(self) -> int:
        """The turn of a request that belongs to no session."""
        self._requests_begun += 1
        return self._requests_begun - 1

    def request_begins(self) -> None:
        """The current task answers a request to speak, which an end of the gateway waits for."""
        task = asyncio.current_task()
        assert task is not None
        self.requests.add(task)
        task.add_done_callback(self.requests.discard)

    def drain(self, end: Callable[[], None]) -> None:
        """No more sessions; the port stays open until the last one of the whole gateway is closed."""
        self.admission.is_draining = True
        for conversation in list(self.conversations):
            conversation.shutdown()
        self._run_in_background(self._end_when_quiet(end))

    async def _end_when_quiet(self, end: Callable[[], None]) -> None:
        deadline = monotonic() + self.config.drain_timeout_s
        # The sessions of other workers, which have no way to tell, keep this one's listener open.
        while monotonic() < deadline and (self.book.total(Gauge.SESSIONS) or self.requests):  # noqa: ASYNC110
            await asyncio.sleep(_DRAIN_LOOK_S)
        for conversation in list(self.conversations):
            conversation.go_away()
        for request in list(self.requests):
            request.cancel()
        end()

    def end_hearing(self, hearing: Hearing, run: "asyncio.Task[None]") -> None:
        """A session is over: its provider is told so, which the session does not wait for."""
        run.cancel()
        self._run_in_background(_end_hearing(hearing, run))

    def _run_in_background(self, work: Any) -> None:
        task: asyncio.Task[None] = self.loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        if self._background:
            await asyncio.wait(self._background, timeout=_END_S)
        await self.speaker.close()


async def _end_hearing(hearing: Hearing, run: "asyncio.Task[None]") -> None:
    # Its outcome is looked at nowhere else.
    await asyncio.gather(run, return_exceptions=True)
    await hearing.say_goodbye()
