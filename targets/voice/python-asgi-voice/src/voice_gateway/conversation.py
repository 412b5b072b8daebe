"""A session: what a caller may say when, and who is told."""

import asyncio
import uuid
from collections import deque
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Final

from . import messages
from .admission import Admitted
from .hearing import Hearing
from .line import Line
from .messages import (
    FORCED_SPEECH_FINAL,
    ClientMessage,
    ConfigMessage,
    ErrorKind,
    RejectedError,
    SpeakMessage,
    SttResult,
)
from .outbox import Reply
from .replies import Replies
from .shared import ERRORS_AT, Counter

if TYPE_CHECKING:
    from .service import Service

_GOING_AWAY: Final = 1001
_POLICY: Final = 1008

_CONFIG_WITHIN_S: Final = 10.0
_SPEECH_FINAL_WITHIN_S: Final = 5.0
_BAD_MESSAGES_MAX: Final = 100
_BAD_MESSAGES_WITHIN_S: Final = 10.0
_AUDIO_BYTES_MAX: Final = 5 << 20

# While the gateway ends, nobody has a second to wait.
_DRAIN_LINGER_S: Final = 0.25


class _Stage(Enum):
    """How far a session is."""

    NEW = "send a config first"
    CONNECTING = "wait for ready"
    READY = "ready"
    WITHOUT_AUDIO = 'the config has "audio":false'


class Conversation(Line):
    """One session, from its upgrade to its end. It listens to its `Hearing`, and is the output of its `Replies`."""

    __slots__ = (
        "_admitted",
        "_bad_at",
        "_config_timer",
        "_hearing",
        "_hearing_task",
        "_idle_timer",
        "_is_draining",
        "_replies",
        "_service",
        "_speech_final_timer",
        "_stage",
        "_stream_id",
        "_turn",
    )

    def __init__(self, service: "Service", transport: asyncio.Transport, admitted: Admitted, turn: int) -> None:
        super().__init__(transport, service.loop, service.config.out_buffer_bytes)
        self._service = service
        self._admitted = admitted
        # Which provider is its own.
        self._turn = turn
        self._stage = _Stage.NEW
        self._stream_id = ""
        self._hearing: Hearing | None = None
        self._hearing_task: asyncio.Task[None] | None = None
        self._replies: Replies | None = None
        self._is_draining = False
        # When the newest bad messages came.
        self._bad_at: deque[float] = deque(maxlen=_BAD_MESSAGES_MAX)
        self._config_timer = service.loop.call_later(_CONFIG_WITHIN_S, self.close, _POLICY)
        self._idle_timer = service.loop.call_later(service.config.idle_s, self._look_if_idle)
        self._speech_final_timer: asyncio.TimerHandle | None = None
        service.connections.add(self)
        service.conversations.add(self)
        if service.admission.is_draining:
            self.shutdown()

    # What comes from the caller

    def on_text(self, text: str, now: float) -> None:
        if self._is_closing:
            return
        try:
            self._take(messages.parse(text))
        except RejectedError as rejected:
            self._reject(rejected, now)

    def _take(self, message: ClientMessage) -> None:
        if isinstance(message, ConfigMessage):
            self._configure(message)
        elif self._replies is None or self._stage is not _Stage.READY:
            raise RejectedError(ErrorKind.NOT_READY, self._stage.value)
        elif isinstance(message, SpeakMessage):
            self._replies.speak(message)
        else:
            self._replies.clear()
            self._close_if_drained()

    def on_binary(self, payload: bytes, now: float) -> None:
        if self._is_closing:
            return
        size = len(payload)
        if size % 2:
            self._reject(RejectedError(ErrorKind.BAD_MESSAGE, "audio: an odd number of bytes"), now)
        elif size > _AUDIO_BYTES_MAX:
            self._reject(RejectedError(ErrorKind.TOO_LARGE, f"audio: over {_AUDIO_BYTES_MAX} bytes"), now)
        elif self._hearing is None or self._stage is not _Stage.READY:
            self._reject(RejectedError(ErrorKind.NOT_READY, self._stage.value), now)
        else:
            self._service.book.add(Counter.AUDIO_IN_BYTES, size)
            self._hearing.push(payload)

    def _reject(self, rejected: RejectedError, now: float) -> None:
        self.error(rejected.kind, str(rejected), retryable=False)
        self._bad_at.append(now)
        if len(self._bad_at) == _BAD_MESSAGES_MAX and now - self._bad_at[0] <= _BAD_MESSAGES_WITHIN_S:
            self.close(_POLICY)

    def _configure(self, message: ConfigMessage) -> None:
        if self._stage is not _Stage.NEW:
            raise RejectedError(ErrorKind.BAD_CONFIG, "config: came before, and was good")
        self._config_timer.cancel()
        self._stream_id = message.stream_id if message.stream_id is not None else str(uuid.uuid4())
        if message.providers is None:
            self._stage = _Stage.WITHOUT_AUDIO
            self.send(messages.ready(self._stream_id))
            return
        self._stage = _Stage.CONNECTING
        service, (stt, tts) = self._service, message.providers
        base = service.provider_url(self._turn)
        self._replies = Replies(service.speaker, service.book, base, tts, self)
        self._hearing = Hearing(service.config, service.book, base, stt, self)
        self._hearing_task = service.loop.create_task(self._hearing.run())

    # What the hearing tells

    def opened(self) -> None:
        self._stage = _Stage.READY
        self.send(messages.ready(self._stream_id))

    def not_opened(self, message: str) -> None:
        self._hearing = self._hearing_task = self._replies = None
        self._stage = _Stage.NEW
        self.error(ErrorKind.STT_FAILED, message, retryable=True)
        self._config_timer = self._loop.call_later(_CONFIG_WITHIN_S, self.close, _POLICY)

    def heard(self, result: SttResult) -> None:
        if self._speech_final_timer is not None:
            self._speech_final_timer.cancel()
            self._speech_final_timer = None
        if self._is_closing:
            return
        if result.is_final and not result.is_speech_final:
            self._speech_final_timer = self._loop.call_later(_SPEECH_FINAL_WITHIN_S, self.heard, FORCED_SPEECH_FINAL)
        self._service.book.add(Counter.FINAL_RESULTS if result.is_final else Counter.INTERIM_RESULTS)
        self.send_result(messages.stt_result(result))

    def error(self, kind: ErrorKind, message: str, *, retryable: bool) -> None:
        self._service.book.add(ERRORS_AT[kind])
        self.send(messages.error(kind, message, retryable=retryable))

    # What the line tells

    def wrote_audio(self, pcm_bytes: int) -> None:
        self._service.book.add(Counter.AUDIO_OUT_BYTES, pcm_bytes)

    def wrote_end(self, reply: Reply) -> None:
        if self._replies is not None:
            self._replies.finished(reply)
        self._close_if_drained()

    def all_written(self) -> None:
        self._close_if_drained()

    # The end

    def shutdown(self) -> None:
        """The gateway ends: only what plays is played to its end."""
        if self._is_draining:
            return
        self._is_draining = True
        if self._replies is not None:
            self._replies.drain()
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._is_draining and self.is_all_written and (self._replies is None or self._replies.are_over):
            self.go_away()

    def go_away(self) -> None:
        """The gateway waits no longer."""
        self.close(_GOING_AWAY, _DRAIN_LINGER_S)

    def _look_if_idle(self) -> None:
        left_s = self.heard_at + self._service.config.idle_s - monotonic()
        if left_s <= 0:
            self.close(_GOING_AWAY)
        else:
            self._idle_timer = self._loop.call_later(left_s, self._look_if_idle)

    def ended(self) -> None:
        super().ended()
        for timer in (self._config_timer, self._idle_timer, self._speech_final_timer):
            if timer is not None:
                timer.cancel()
        if self._replies is not None:
            self._replies.end()
            self._replies = None
        if self._hearing is not None and self._hearing_task is not None:
            self._service.end_hearing(self._hearing, self._hearing_task)
        self._hearing = self._hearing_task = None
        self._service.admission.give_back(self._admitted)
        self._service.conversations.discard(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._service.connections.discard(self)
