"""A small speech provider for tests: it speaks and hears as it is told to, in a thread of its own."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, Self, TypeVar

from aiohttp import WSMsgType, web

BLOCK_BYTES = 960

Result = TypeVar("Result")


def reply_audio(text: str, blocks: int) -> bytes:
    """The audio of a text: no block is like another one, nor like one of another text."""
    return b"".join(f"{text[:400]}/{block}|".encode().ljust(BLOCK_BYTES, b".") for block in range(blocks))


class Spoken:
    """A request to speak, as it came."""

    def __init__(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> None:
        self.path = path
        self.headers = headers
        self.body = body
        self.text = str(body.get("text") or body.get("input") or body.get("transcript"))
        self.is_complete = False
        self.left_at: float | None = None


class Heard:
    """A connection to hear, and what came."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket = socket
        self.request = request
        self.query = dict(request.query)
        self.headers = dict(request.headers)
        self.audio = bytearray()
        self.messages: list[dict[str, Any]] = []
        self.is_over = False


Behaviour = Callable[[web.Request, Spoken], Awaitable[web.StreamResponse]]


async def _left(request: web.Request, spoken: Spoken, seconds: float) -> bool:
    """Waits; whether the client has left meanwhile."""
    until = monotonic() + seconds
    while True:
        if request.transport is None or request.transport.is_closing():
            spoken.left_at = monotonic()
            return True
        if monotonic() >= until:
            return False
        await asyncio.sleep(0.002)


def audio(
    blocks: int, pause_s: float = 0.0, *, first_s: float = 0.0, stalls_after: int = -1, breaks_after: int = -1
) -> Behaviour:
    """Speaks so many blocks, with pauses."""

    async def answer(request: web.Request, spoken: Spoken) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "audio/pcm", "x-mock-provider-ms": "12.5"})
        if await _left(request, spoken, first_s):
            return response
        await response.prepare(request)
        whole = reply_audio(spoken.text, blocks)
        for block in range(blocks):
            if block == breaks_after:
                assert request.transport is not None
                request.transport.abort()
                return response
            pause = pause_s if block != stalls_after else 30.0
            if await _left(request, spoken, pause if block else 0.0):
                return response
            await response.write(whole[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES])
        await response.write_eof()
        spoken.is_complete = True
        return response

    return answer


def status(number: int) -> Behaviour:
    """Answers with a status."""

    async def answer(_request: web.Request, _spoken: Spoken) -> web.StreamResponse:
        return web.Response(status=number, text="on demand\n")

    return answer


def silent() -> Behaviour:
    """Never answers."""
    return audio(1, first_s=30.0)


def reset() -> Behaviour:
    """Breaks the connection."""

    async def answer(request: web.Request, _spoken: Spoken) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer


class MockProvider:
    """Serves at `url` between `with` and its end."""

    def __init__(self) -> None:
        # What becomes of the next requests to speak; then `usual`.
        self.next: deque[Behaviour] = deque()
        self.usual = audio(3)
        self.spoken: list[Spoken] = []
        self.heard: list[Heard] = []
        self.upgrades = 0
        self.refuses_to_hear = False
        self.hangs_at_upgrade = False
        self.answers_pings = True
        self.voices_asked = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        assert self._runner is not None
        self.run(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Does something in the provider's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def say(self, transcript: str, *, final: bool, speech_final: bool, second: float = 0.1) -> None:
        """A result, on the newest connection."""
        result = {
            "type": "Results",
            "start": 0.0,
            "duration": second,
            "is_final": final,
            "speech_final": speech_final,
            "channel": {"alternatives": [{"transcript": transcript, "confidence": 0.75, "words": []}]},
        }
        self.run(self.heard[-1].socket.send_str(json.dumps(result)))

    def hang_up(self) -> None:
        """Resets the newest connection to hear."""

        async def abort() -> None:
            transport = self.heard[-1].request.transport
            assert transport is not None
            transport.abort()

        self.run(abort())

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/listen", self._listen)
        app.router.add_get("/v1/voices", self._voices)
        app.router.add_post("/{path:.*}", self._speak)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        spoken = Spoken(request.path_qs, dict(request.headers), await request.json())
        self.spoken.append(spoken)
        behaviour = self.next.popleft() if self.next else self.usual
        try:
            return await behaviour(request, spoken)
        except ConnectionError:
            spoken.left_at = monotonic()
            raise

    async def _voices(self, _request: web.Request) -> web.StreamResponse:
        self.voices_asked += 1
        labels = {"language": "en", "gender": "female", "accent": "none"}
        return web.json_response({"voices": [{"voice_id": "v1", "name": "Ada", "labels": labels, "preview_url": "x"}]})

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        self.upgrades += 1
        if self.refuses_to_hear:
            return web.Response(status=503)
        if self.hangs_at_upgrade:
            await asyncio.sleep(30)
        socket = web.WebSocketResponse(autoping=False, timeout=0.5, max_msg_size=0)
        heard = Heard(socket, request)
        # Before the answer: whoever has it may look.
        self.heard.append(heard)
        await socket.prepare(request)
        async for message in socket:
            if message.type == WSMsgType.BINARY:
                heard.audio += message.data
            elif message.type == WSMsgType.TEXT:
                heard.messages.append(json.loads(message.data))
            elif message.type == WSMsgType.PING and self.answers_pings:
                await socket.pong(message.data)
        heard.is_over = True
        return socket
