"""A session: exactly one answer for each message of audio, in order.

Written after the published vosk-server (`websocket/asr_server.py`): a text with `config` is read and not answered, the exact
text `{"eof" : 1}` ends, and all else is audio.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self

from websockets.asyncio.server import ServerConnection

from . import worker

# As the clients write it, spaces included; vosk-server compares the text.
EOF = '{"eof" : 1}'
SAMPLE_RATE = 16_000

POLICY_VIOLATION = 1008


class BadMessage(Exception):
    """What a client sent cannot be used; its text is the reason of the close."""


class Conversations:
    """The sessions of this server, spread over its decoding processes.

    pocketsphinx keeps Python's lock while it decodes, so decoding in threads would stop the event loop. A session stays
    with one process, which has its decoder. A process takes jobs in their order, and a session has one at a time, so all
    get their turn.
    """

    def __init__(self, processes: int) -> None:
        # Forked children would inherit the listening socket and the signal handlers of asyncio.
        context = multiprocessing.get_context("spawn")
        self._pools = [ProcessPoolExecutor(1, mp_context=context, initializer=worker.prepare) for _ in range(processes)]
        self._load: Counter[int] = Counter()
        self._last_session = 0

    def __enter__(self) -> Self:
        # Each pool starts its process now, and loads the models: the first session need not wait.
        for ready in [pool.submit(worker.warm) for pool in self._pools]:
            ready.result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    async def hold(self, connection: ServerConnection) -> None:
        """One session, from its first message to its last answer."""
        self._last_session += 1
        session = self._last_session
        place = min(range(len(self._pools)), key=lambda candidate: self._load[candidate])
        self._load[place] += 1
        pool = self._pools[place]
        loop = asyncio.get_running_loop()
        try:
            async for message in connection:
                if message == EOF:
                    await connection.send(await loop.run_in_executor(pool, worker.finish, session))
                    return
                if isinstance(message, str):
                    check_config(message)
                    continue
                check_audio(message)
                await connection.send(await loop.run_in_executor(pool, worker.accept, session, message))
        except BadMessage as bad:
            await connection.close(POLICY_VIOLATION, str(bad))
        except BrokenProcessPool:
            # Half a server would be measured as a whole one.
            print("a decoding process has died: the server ends", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            self._load[place] -= 1
            with contextlib.suppress(BrokenProcessPool):
                await loop.run_in_executor(pool, worker.forget, session)


def check_audio(pcm: bytes) -> None:
    """Raises `BadMessage` if these are no whole samples."""
    if len(pcm) % 2:
        raise BadMessage("audio: an odd number of bytes")


def check_config(text: str) -> None:
    """Reads a `config` message; raises `BadMessage` for what this server cannot do."""
    try:
        message = json.loads(text)
    except ValueError:
        raise BadMessage("text: neither JSON nor the end") from None
    config = message.get("config") if isinstance(message, dict) else None
    if not isinstance(config, dict):
        raise BadMessage("text: an object with config is expected")
    rate = config.get("sample_rate", SAMPLE_RATE)
    if rate != SAMPLE_RATE:
        raise BadMessage(f"sample_rate: the model hears {SAMPLE_RATE} only")
