"""When a lost connection to hear is tried again, and what is told: without a network, and without waiting."""

import asyncio
from typing import Final, Self

import pytest

from gateway_common.variables import BaseUrl
from voice_gateway import hearing
from voice_gateway.audio import BLOCK_BYTES
from voice_gateway.config import Config
from voice_gateway.hearing import Hearing
from voice_gateway.messages import ErrorKind, SttConfig, SttResult
from voice_gateway.shared import Shares

SOON = [0.1, 0.2, 0.4, 0.8, 1.6]
KEPT_BLOCKS = 50
# The gateway's own is replaced.
SLEEP: Final = asyncio.sleep


def blocks(first: int, count: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") * (BLOCK_BYTES // 4) for number in range(first, first + count))


class Connection:
    """A connection that is lost at once, or that stays."""

    def __init__(self, *, stays: bool) -> None:
        self._stays = stays
        self.audio = b""

    async def send(self, message: bytes) -> None:
        self.audio += message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        if self._stays:
            await asyncio.Event().wait()
        raise StopAsyncIteration


class Outage:
    """A provider that takes the connections of a script (`None` is a refusal), and the listener who is told."""

    def __init__(self, script: list[Connection | None], blocks_per_try: int) -> None:
        self.told: list[str | float] = []
        self.hearing = Hearing(
            Config.from_env({"AUDIO_BUFFER_MS": str(20 * KEPT_BLOCKS)}),
            Shares(1).open(0).book,
            BaseUrl("127.0.0.1", 1, "", "127.0.0.1:1"),
            SttConfig("en", "m", True),
            self,
        )
        self._script = script
        self._blocks_per_try = blocks_per_try
        self._said_blocks = 0

    def run(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        """Until the connection that stays has all audio."""
        monkeypatch.setattr(hearing, "connect", self._connect)
        monkeypatch.setattr(asyncio, "sleep", self._pass)
        asyncio.run(self._run())
        return self

    async def _run(self) -> None:
        task = asyncio.create_task(self.hearing.run())
        async with asyncio.timeout(5):
            while self._script:
                await SLEEP(0)
        # For the tasks of the connection that stays.
        for _ in range(10):
            await SLEEP(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _pass(self, delay_s: float) -> None:
        """A delay before a try is noted, and over."""
        if delay_s > 2.0:
            await SLEEP(delay_s)
        self.told.append(delay_s)

    async def _connect(self, *_: object, **__: object) -> Connection:
        if self.told:
            self.hearing.push(blocks(self._said_blocks, self._blocks_per_try))
            self._said_blocks += self._blocks_per_try
        connection = self._script.pop(0)
        if connection is None:
            raise OSError("refused")
        return connection

    # The listener

    def opened(self) -> None:
        self.told.append("opened")

    def not_opened(self, message: str) -> None:
        raise AssertionError(message)

    def heard(self, result: SttResult) -> None:
        raise AssertionError(result)

    def error(self, kind: ErrorKind, message: str, *, retryable: bool) -> None:
        self.told.append(message if kind is ErrorKind.AUDIO_DROPPED else kind.value)
        assert retryable == (kind is ErrorKind.STT_LOST)


def test_tries_go_on_in_silence_and_a_later_loss_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Connection(stays=False), *[None] * 8, Connection(stays=False), *[None] * 5, Connection(stays=True)]
    told = Outage(script, blocks_per_try=0).run(monkeypatch).told
    assert told == ["opened", "stt_lost", *SOON, "stt_failed", *[2.0] * 4, "stt_lost", *SOON, "stt_failed", 2.0]


def test_the_newest_audio_goes_first_and_each_drop_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    back = Connection(stays=True)
    # Twenty blocks, 400 ms, come at each of eight tries.
    outage = Outage([Connection(stays=False), *[None] * 7, back], blocks_per_try=20).run(monkeypatch)
    lost = ["opened", "stt_lost", *SOON]
    failed = ["stt_failed", "1000 ms of audio were dropped"]
    assert outage.told == [*lost, *failed, *[2.0] * 3, "1200 ms of audio were dropped"]
    assert back.audio == blocks(110, KEPT_BLOCKS)


def test_a_connection_that_does_not_last_uses_up_the_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    short = [Connection(stays=False) for _ in range(6)]
    told = Outage([*short, Connection(stays=True)], blocks_per_try=0).run(monkeypatch).told
    lost = [step for delay_s in SOON for step in ("stt_lost", delay_s)]
    assert told == ["opened", *lost, "stt_lost", "stt_failed", 2.0]
    monkeypatch.setattr(hearing, "_STEADY_AFTER_S", 0.0)
    script = [Connection(stays=False), None, Connection(stays=False), Connection(stays=True)]
    told = Outage(script, blocks_per_try=0).run(monkeypatch).told
    assert told == ["opened", "stt_lost", 0.1, 0.2, "stt_lost", 0.1]
