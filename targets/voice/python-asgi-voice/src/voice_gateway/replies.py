"""The replies of a session: one plays, others wait, and each ends exactly once."""

import asyncio
from collections import deque
from typing import Final, Protocol

from gateway_common.ledger import Book
from gateway_common.variables import BaseUrl

from .messages import ErrorKind, RejectedError, SpeakMessage, TtsConfig, error, playback_complete
from .outbox import Reply
from .shared import ERRORS_AT, SPEAKS_AT, SpeakOutcome
from .speech import Speaker, SpeechError

WAITING_BYTES_MAX: Final = 1 << 20


class Output(Protocol):
    """Where a reply goes. `finish` says its last word, and calls `Replies.finished` when that is written."""

    def audio(self, reply: Reply, pcm: bytes) -> None:
        """Audio of a reply."""

    def finish(self, reply: Reply, message: str) -> None:
        """The message that ends a reply, behind its audio."""

    def drop(self, reply: Reply) -> None:
        """Nothing more of this reply is to be written."""


class Replies:
    """Plays replies one after another."""

    def __init__(self, speaker: Speaker, book: Book, base: BaseUrl, tts: TtsConfig, output: Output) -> None:
        self._speaker = speaker
        self._book = book
        self._base = base
        self._tts = tts
        self._output = output
        self._spoken = 0
        self._waiting: deque[Reply] = deque()
        self._playing: Reply | None = None
        self._task: asyncio.Task[None] | None = None
        # Why the one that plays failed, once it has.
        self._failure: ErrorKind | None = None
        self._is_draining = False

    @property
    def are_over(self) -> bool:
        """Whether nothing plays and nothing waits."""
        return self._playing is None and not self._waiting

    def speak(self, message: SpeakMessage) -> None:
        """A text is to be spoken, now or in its turn; raises `RejectedError` where too many wait."""
        if message.flush:
            self._drop()
        if sum(reply.text_bytes for reply in self._waiting) + message.text_bytes > WAITING_BYTES_MAX:
            self._play_next()
            raise RejectedError(ErrorKind.TOO_LARGE, f"text: over {WAITING_BYTES_MAX} bytes would wait")
        self._spoken += 1
        if self._is_draining:
            self._book.add(SPEAKS_AT[SpeakOutcome.DROPPED])
            return
        self._waiting.append(Reply(self._spoken, message.text, message.allow_interruption, message.text_bytes))
        self._play_next()

    def clear(self) -> None:
        """The caller wants to hear no more of what may be interrupted."""
        self._drop()
        self._play_next()

    def drain(self) -> None:
        """The gateway ends: what plays is played to its end, and that is all."""
        self._is_draining = True
        self._book.add(SPEAKS_AT[SpeakOutcome.DROPPED], len(self._waiting))
        self._waiting.clear()

    def end(self) -> None:
        """The session is over."""
        self.drain()
        if self._playing is not None:
            self._end_playing(SpeakOutcome.DROPPED)

    def finished(self, reply: Reply) -> None:
        """The last word of a reply has been written."""
        if reply is self._playing:
            if self._failure is not None:
                self._book.add(ERRORS_AT[self._failure])
            self._end_playing(SpeakOutcome.COMPLETE if self._failure is None else SpeakOutcome.FAILED)
            self._play_next()

    def _drop(self) -> None:
        kept = [reply for reply in self._waiting if not reply.may_be_interrupted]
        self._book.add(SPEAKS_AT[SpeakOutcome.DROPPED], len(self._waiting) - len(kept))
        self._waiting = deque(kept)
        reply = self._playing
        if reply is not None and reply.may_be_interrupted:
            self._output.drop(reply)
            self._end_playing(SpeakOutcome.DROPPED)

    def _end_playing(self, outcome: SpeakOutcome) -> None:
        self._book.add(SPEAKS_AT[outcome])
        self._playing = None
        if self._task is not None:
            # Which ends its request, if that has not ended by itself.
            self._task.cancel()
            self._task = None

    def _play_next(self) -> None:
        if self._playing is None and self._waiting:
            self._playing = self._waiting.popleft()
            self._failure = None
            self._task = asyncio.create_task(self._play(self._playing))

    async def _play(self, reply: Reply) -> None:
        try:
            speech = await self._speaker.open(self._base, self._tts, reply.text)
            try:
                while chunk := await speech.read():
                    self._output.audio(reply, chunk)
            finally:
                speech.close()
        except SpeechError as failure:
            self._failure = failure.kind
            message = error(failure.kind, f"speak {reply.number}: {failure}", retryable=True)
        else:
            message = playback_complete(reply.number, speech.provider_ms, reply.dropped_bytes)
        self._task = None
        self._output.finish(reply, message)
