"""The client of the inference server: httpx, HTTP/2 with prior knowledge."""

import asyncio
from itertools import cycle
from time import monotonic

import httpx
from pydantic import ValidationError

from .config import Settings
from .messages import Failure, FailureKind, InferenceAnswer

# Most characters of a message that quotes from elsewhere.
_QUOTE_CHARS_MAX = 200


class InferenceError(Exception):
    """A request without a usable answer."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Inference:
    """One worker's connections, taken in turns. Each is a client of its own, because a client of httpx that may share a
    connection never opens a second one."""

    def __init__(self, settings: Settings) -> None:
        self._url = f"{settings.inference_url}".rstrip("/") + "/infer"
        self._timeout_s = settings.inference_timeout_ms / 1000
        headers = {"content-type": "application/octet-stream", "x-cpu-passes": f"{settings.cpu_passes}"}
        self._clients = [
            httpx.AsyncClient(
                http1=False,
                http2=True,
                headers=headers,
                # The timeout of the contract is for a request as a whole, httpx' are for its steps.
                timeout=None,
                limits=httpx.Limits(max_connections=1, keepalive_expiry=None),
                trust_env=False,
            )
            for _ in range(settings.inference_http_clients)
        ]
        self._turns = cycle(self._clients)

    async def infer(self, pcm: bytes) -> InferenceAnswer:
        """Asks for the transcript of a batch; raises `InferenceError`."""
        sent_at = monotonic()

        def failed(kind: FailureKind, message: str, status: int | None = None) -> InferenceError:
            elapsed_ms = (monotonic() - sent_at) * 1000
            return InferenceError(Failure(kind, message[:_QUOTE_CHARS_MAX], status, elapsed_ms))

        try:
            async with asyncio.timeout(self._timeout_s):
                response = await next(self._turns).post(self._url, content=pcm)
        except TimeoutError:
            raise failed(FailureKind.TIMEOUT, "no answer in time") from None
        except httpx.HTTPError as error:
            raise failed(FailureKind.CONNECTION_RESET, f"inference request: {error!r}") from error
        status = response.status_code
        if status != 200:
            raise failed(FailureKind.of_status(status), f"inference answered with status {status}", status)
        try:
            return InferenceAnswer.model_validate_json(response.content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise failed(FailureKind.PARSE_ERROR, f"inference answer: {first['msg']}", status) from error

    async def aclose(self) -> None:
        """Closes the connections."""
        for client in self._clients:
            await client.aclose()
