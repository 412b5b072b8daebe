"""Text to speech: requests to providers over HTTP/1.1, their one retry, and their time-outs."""

import asyncio
from time import monotonic
from typing import Final

import aiohttp
from yarl import URL

from gateway_common.ledger import Book
from gateway_common.variables import BaseUrl

from .config import Config
from .messages import ErrorKind, TtsConfig
from .providers import Request, tts_request
from .shared import REQUESTS_AT, RequestOutcome

_PROVIDER_MS: Final = "x-mock-provider-ms"
_TRIES: Final = 2

# What a broken connection looks like.
BROKEN: Final = (aiohttp.ClientError, OSError, EOFError)


class SpeechError(Exception):
    """A reply that failed."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def is_timeout(self) -> bool:
        return self.kind is ErrorKind.TTS_TIMEOUT


class _MayBeTriedAgainError(Exception):
    """A reset or a 5xx before the first byte."""


class Speech:
    """The audio of a reply, from its first byte on."""

    __slots__ = ("_book", "_first", "_gap_s", "_provider", "_response", "provider_ms")

    def __init__(
        self, speaker: "Speaker", request: Request, response: aiohttp.ClientResponse, first: bytes, provider_ms: float
    ) -> None:
        self._response: aiohttp.ClientResponse | None = response
        self._first = first
        self._gap_s = speaker.config.tts_gap_s
        self._provider = request.provider
        self._book = speaker.book
        self.provider_ms = provider_ms

    async def read(self) -> bytes:
        """What has come, and at the end nothing; raises `SpeechError`."""
        if self._first:
            first, self._first = self._first, b""
            return first
        if self._response is None:
            return b""
        try:
            async with asyncio.timeout(self._gap_s):
                chunk = await self._response.content.readany()
        except TimeoutError:
            self._end(RequestOutcome.FAILED)
            raise SpeechError(ErrorKind.TTS_TIMEOUT, f"nothing came for {self._gap_s:g} s") from None
        except BROKEN as error:
            self._end(RequestOutcome.FAILED)
            raise SpeechError(ErrorKind.TTS_FAILED, f"the audio broke off: {type(error).__name__}") from None
        if not chunk:
            self._end(RequestOutcome.COMPLETE)
        return chunk

    def close(self) -> None:
        """Nobody wants the rest, if there is one: the request ends with its connection, at once."""
        self._end(RequestOutcome.CANCELLED)

    def _end(self, outcome: RequestOutcome) -> None:
        response, self._response = self._response, None
        if response is None:
            return
        self._book.add(REQUESTS_AT[self._provider, outcome])
        if outcome is RequestOutcome.COMPLETE:
            response.release()
        else:
            response.close()


class Speaker:
    """Asks providers to speak. Connections are reused, and belong to one event loop."""

    def __init__(self, config: Config, book: Book) -> None:
        self.config = config
        self.book = book
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        )

    async def close(self) -> None:
        await self.http.close()

    async def open(self, base: BaseUrl, tts: TtsConfig, text: str) -> Speech:
        """A reply that has begun; raises `SpeechError`."""
        request = tts_request(base, tts, text, self.config.provider_key)
        deadline = asyncio.get_running_loop().time() + self.config.tts_first_s
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._try(request, deadline)
            except _MayBeTriedAgainError as error:
                if not tries_left:
                    raise SpeechError(ErrorKind.TTS_FAILED, str(error)) from None
        raise AssertionError

    async def _try(self, request: Request, deadline: float) -> Speech:
        response: aiohttp.ClientResponse | None = None
        outcome = RequestOutcome.FAILED
        asked = monotonic()
        try:
            async with asyncio.timeout_at(deadline):
                response = await self.http.post(
                    URL(request.url, encoded=True), data=request.body, headers=request.headers, allow_redirects=False
                )
                _check(response.status)
                first = await response.content.readany()
        except TimeoutError:
            seconds = self.config.tts_first_s
            raise SpeechError(ErrorKind.TTS_TIMEOUT, f"no audio within {seconds:g} s") from None
        except BROKEN as error:
            raise _MayBeTriedAgainError(f"the connection broke: {type(error).__name__}") from None
        except asyncio.CancelledError:
            outcome = RequestOutcome.CANCELLED
            raise
        else:
            if not first:
                raise SpeechError(ErrorKind.TTS_FAILED, "the answer has no audio")
            outcome = RequestOutcome.COMPLETE
            claimed = _milliseconds(response.headers.get(_PROVIDER_MS))
            took_ms = (monotonic() - asked) * 1000 if claimed is None else claimed
            return Speech(self, request, response, first, took_ms)
        finally:
            # A speech that has begun counts when it ends.
            if outcome is not RequestOutcome.COMPLETE:
                self.book.add(REQUESTS_AT[request.provider, outcome])
                if response is not None:
                    response.close()


def _check(status: int) -> None:
    if status == 429:
        raise SpeechError(ErrorKind.TTS_RATE_LIMITED, "the provider answered 429")
    if status >= 500:
        raise _MayBeTriedAgainError(f"the provider answered {status}")
    if status != 200:
        raise SpeechError(ErrorKind.TTS_FAILED, f"the provider answered {status}")


def _milliseconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
