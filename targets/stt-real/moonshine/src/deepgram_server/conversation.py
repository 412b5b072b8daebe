"""A session: audio is collected while the last update is decoded; the next update takes all that has come since."""

import asyncio
import contextlib
import json
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from moonshine_voice.transcriber import Transcriber
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from .options import SAMPLE_RATE, Options, Refused
from .recogniser import MODEL, Stream, make_transcriber
from .results import Line, Results

BYTES_PER_S = SAMPLE_RATE * 2
# An update decodes the open line from its start, so it costs more the longer that is.
UPDATE_BYTES = BYTES_PER_S // 2
# A session that is this far behind is not read until its update is done.
BEHIND_BYTES_MAX = BYTES_PER_S * 10
IDLE_S = 10.0

POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011


class BadMessage(Exception):
    """What a client sent cannot be used; its text is the reason of the close."""


class _Worker:
    """A thread with a transcriber of its own. Moonshine lets go of Python's lock while it decodes."""

    def __init__(self, number: int) -> None:
        self.pool = ThreadPoolExecutor(1, thread_name_prefix=f"decode-{number}")
        self.transcriber: Transcriber = self.pool.submit(make_transcriber).result()


class Conversations:
    """The sessions of this server, spread over its decoding threads."""

    def __init__(self, threads: int) -> None:
        self._workers = [_Worker(number) for number in range(threads)]
        self._load: Counter[int] = Counter()

    @staticmethod
    def refusal(request: Request) -> Response | None:
        """The answer to an upgrade whose query cannot be served."""
        try:
            Options.from_query(request.path.partition("?")[2])
        except Refused as refused:
            headers = Headers({"dg-error": str(refused), "Content-Length": "0", "Connection": "close"})
            return Response(HTTPStatus.BAD_REQUEST, "Bad Request", headers)
        return None

    async def hold(self, connection: ServerConnection) -> None:
        """One session, from its first message to its last."""
        request = connection.request
        options = Options.from_query(request.path.partition("?")[2] if request else "")
        place = min(range(len(self._workers)), key=lambda candidate: self._load[candidate])
        self._load[place] += 1
        conversation = _Conversation(connection, options, self._workers[place])
        try:
            await conversation.run()
        finally:
            self._load[place] -= 1
            await conversation.release()


class _Conversation:
    def __init__(self, connection: ServerConnection, options: Options, worker: _Worker) -> None:
        self._connection = connection
        self._worker = worker
        self._results = Results(str(uuid.uuid4()), MODEL, interim=options.interim_results)
        self._stream: Stream | None = None
        self._pending = bytearray()
        self._heard_bytes = 0
        self._update: asyncio.Task[None] | None = None

    async def run(self) -> None:
        try:
            while True:
                async with asyncio.timeout(IDLE_S):
                    message = await self._connection.recv()
                if isinstance(message, bytes):
                    await self._take(message)
                elif _type_of(message) == "CloseStream":
                    await self._end()
                    return
        except BadMessage as bad:
            await self._connection.close(POLICY_VIOLATION, f"DATA-0000: {bad}")
        except TimeoutError:
            await self._connection.close(INTERNAL_ERROR, "NET-0001: no audio and no KeepAlive for 10 s")

    async def release(self) -> None:
        """Waits for what is decoded at this moment, and frees the stream."""
        if self._update is not None:
            with contextlib.suppress(Exception):
                await self._update
        if self._stream is not None:
            await self._call(self._stream.free)

    async def _take(self, audio: bytes) -> None:
        if not audio or len(audio) % 2:
            raise BadMessage("audio: an odd number of bytes, or none")
        self._pending += audio
        if self._update is not None and (self._update.done() or len(self._pending) >= BEHIND_BYTES_MAX):
            # Raises what the update raised.
            await self._update
            self._update = None
        if self._update is None and len(self._pending) >= UPDATE_BYTES:
            self._update = asyncio.create_task(self._decode())

    async def _decode(self) -> None:
        pcm = bytes(self._pending)
        self._pending.clear()
        if self._stream is None:
            self._stream = await self._call(Stream, self._worker.transcriber)
        lines = await self._call(self._stream.hear, pcm)
        self._heard_bytes += len(pcm)
        await self._send(lines)

    async def _end(self) -> None:
        if self._update is not None:
            await self._update
            self._update = None
        if self._pending:
            await self._decode()
        if self._stream is not None:
            await self._send(await self._call(self._stream.finish))
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        await self._connection.send(json.dumps(self._results.summary(self._heard_s, created)))

    @property
    def _heard_s(self) -> float:
        return self._heard_bytes / BYTES_PER_S

    async def _send(self, lines: list[Line]) -> None:
        for message in self._results.update(lines, self._heard_s):
            await self._connection.send(json.dumps(message))

    async def _call(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker.pool, function, *arguments)


def _type_of(text: str) -> str:
    """The type of a control message. Unknown ones, and `KeepAlive`, have no effect but that the session is not idle."""
    try:
        message = json.loads(text)
    except ValueError:
        raise BadMessage("text: not JSON") from None
    kind = message.get("type") if isinstance(message, dict) else None
    if not isinstance(kind, str):
        raise BadMessage("text: an object with type is expected")
    if kind == "Finalize":
        raise BadMessage("Finalize: not served, CloseStream ends a session")
    return kind
