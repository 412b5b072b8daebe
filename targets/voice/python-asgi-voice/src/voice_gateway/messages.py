"""The JSON of the contract: what clients may say, and what the gateway says."""

import json
import math
import time
from enum import Enum
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final, NamedTuple, TypeVar

from .fields import Fields, FieldsError

TEXT_BYTES_MAX: Final = 102_400
STREAM_ID_BYTES_MAX: Final = 256
STT_SAMPLE_RATE: Final = 16_000
TTS_SAMPLE_RATE: Final = 24_000

AnyEnum = TypeVar("AnyEnum", bound=Enum)


class ErrorKind(Enum):
    """What an `error` says in its `kind`."""

    BAD_MESSAGE = "bad_message"
    NOT_READY = "not_ready"
    BAD_CONFIG = "bad_config"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"
    STT_FAILED = "stt_failed"
    STT_LOST = "stt_lost"
    AUDIO_DROPPED = "audio_dropped"
    TTS_FAILED = "tts_failed"
    TTS_TIMEOUT = "tts_timeout"
    TTS_RATE_LIMITED = "tts_rate_limited"


class RejectedError(Exception):
    """A message that is answered with an `error`."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class TtsProvider(Enum):
    """Who may be asked for a reply's audio."""

    DEEPGRAM = "deepgram"
    ELEVENLABS = "elevenlabs"
    OPENAI = "openai"
    CARTESIA = "cartesia"


class SttConfig(NamedTuple):
    """How a caller's audio is to be heard. The provider is Deepgram."""

    language: str
    model: str
    punctuation: bool


class TtsConfig(NamedTuple):
    """How replies are to be spoken."""

    provider: TtsProvider
    model: str
    voice_id: str


class ConfigMessage(NamedTuple):
    """Opens a session; without audio it has no providers."""

    stream_id: str | None
    providers: tuple[SttConfig, TtsConfig] | None


class SpeakMessage(NamedTuple):
    """A text to be spoken."""

    text: str
    text_bytes: int
    flush: bool
    allow_interruption: bool


class ClearMessage(NamedTuple):
    """An end to what is spoken."""


ClientMessage = ConfigMessage | SpeakMessage | ClearMessage


def parse(text: str) -> ClientMessage:
    """A client's message; raises `RejectedError`."""
    try:
        fields = Fields.parse(text)
        kind = fields.text("type")
    except FieldsError as error:
        raise RejectedError(ErrorKind.BAD_MESSAGE, str(error)) from None
    if kind == "clear":
        return ClearMessage()
    if kind == "speak":
        return _speak(fields)
    if kind == "config":
        return _config(fields)
    raise RejectedError(ErrorKind.BAD_MESSAGE, "type: no message of a client has this one")


def _speak(fields: Fields) -> SpeakMessage:
    try:
        text = fields.text("text")
        flush, allow_interruption = fields.flag("flush", True), fields.flag("allow_interruption", True)
        text_bytes = len(text.encode())
    except FieldsError as error:
        raise RejectedError(ErrorKind.BAD_MESSAGE, str(error)) from None
    except UnicodeEncodeError:
        raise RejectedError(ErrorKind.BAD_MESSAGE, "text: has half of a surrogate pair") from None
    if not text:
        raise RejectedError(ErrorKind.BAD_MESSAGE, "text: is empty")
    if text_bytes > TEXT_BYTES_MAX:
        raise RejectedError(ErrorKind.TOO_LARGE, f"text: over {TEXT_BYTES_MAX} bytes")
    return SpeakMessage(text, text_bytes, flush, allow_interruption)


def _config(fields: Fields) -> ConfigMessage:
    try:
        stream_id = fields.text("stream_id") if "stream_id" in fields else None
        if stream_id is not None and len(stream_id.encode(errors="surrogatepass")) > STREAM_ID_BYTES_MAX:
            raise RejectedError(ErrorKind.BAD_CONFIG, f"stream_id: over {STREAM_ID_BYTES_MAX} bytes")
        if not fields.flag("audio", True):
            return ConfigMessage(stream_id, None)
        return ConfigMessage(stream_id, (_stt_config(fields.object("stt_config")), tts_config(fields.object("tts_config"))))
    except FieldsError as error:
        raise RejectedError(ErrorKind.BAD_CONFIG, str(error)) from None


def _stt_config(fields: Fields) -> SttConfig:
    provider, encoding = fields.text("provider"), fields.text("encoding")
    sample_rate, channels = fields.whole("sample_rate"), fields.whole("channels")
    config = SttConfig(fields.text("language"), fields.text("model"), fields.flag("punctuation"))
    _support(fields, "provider", provider, "deepgram")
    _support(fields, "encoding", encoding, "linear16")
    _support(fields, "sample_rate", sample_rate, STT_SAMPLE_RATE)
    _support(fields, "channels", channels, 1)
    return config


def tts_config(fields: Fields) -> TtsConfig:
    """What replies are spoken with; raises `FieldsError`, or `RejectedError` for what is not supported."""
    provider, model = fields.text("provider"), fields.text("model")
    voice_id = fields.text("voice_id", "default")
    audio_format, sample_rate = fields.text("audio_format", "linear16"), fields.whole("sample_rate", TTS_SAMPLE_RATE)
    # No provider's request of the contract has a place for it.
    fields.number("speaking_rate", 1.0)
    _support(fields, "audio_format", audio_format, "linear16")
    _support(fields, "sample_rate", sample_rate, TTS_SAMPLE_RATE)
    try:
        return TtsConfig(TtsProvider(provider), model, voice_id)
    except ValueError:
        names = ", ".join(known.value for known in TtsProvider)
        raise RejectedError(ErrorKind.UNSUPPORTED, f"{fields.path('provider')}: one of {names}") from None


def _support(fields: Fields, name: str, value: str | int, supported: str | int) -> None:
    if value != supported:
        raise RejectedError(ErrorKind.UNSUPPORTED, f"{fields.path(name)}: only {supported} is supported")


class SttResult(NamedTuple):
    """What a provider has heard."""

    transcript: str
    is_final: bool
    is_speech_final: bool
    confidence: float
    provider_ms: float


# What it says where a speaker has been silent for so long that the provider has forgotten to end the utterance.
FORCED_SPEECH_FINAL: Final = SttResult("", is_final=True, is_speech_final=True, confidence=0.0, provider_ms=0.0)


def ready(stream_id: str) -> str:
    return json.dumps({"type": "ready", "stream_id": stream_id, "protocol_version": "1.0"})


def stt_result(result: SttResult) -> str:
    # Some a second for each caller: put together without a dict.
    return (
        f'{{"type":"stt_result","transcript":{quoted(result.transcript)},"is_final":{_flag(result.is_final)},'
        f'"is_speech_final":{_flag(result.is_speech_final)},"confidence":{result.confidence!r},'
        f'"provider_ms":{result.provider_ms:.3f}}}'
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"


def playback_complete(speak: int, provider_ms: float, dropped_bytes: int) -> str:
    return json.dumps(
        {
            "type": "tts_playback_complete",
            "timestamp": time.time_ns() // 1_000_000,
            "speak": speak,
            "provider_ms": round(provider_ms, 3),
            "dropped_bytes": dropped_bytes,
        }
    )


def error(kind: ErrorKind, message: str, *, retryable: bool) -> str:
    return json.dumps({"type": "error", "message": message, "kind": kind.value, "retryable": retryable})


def parse_deepgram(text: str | bytes) -> tuple[SttResult, float] | None:
    """A result of Deepgram's, and the second of the audio that it reaches to; `None` for any other message."""
    try:
        message: Any = json.loads(text)
        if message["type"] != "Results":
            return None
        best = message["channel"]["alternatives"][0]
        result = SttResult(
            str(best["transcript"]), bool(message["is_final"]), bool(message["speech_final"]), float(best["confidence"]), 0.0
        )
        second = float(message["start"]) + float(message["duration"])
        return (result, second) if math.isfinite(result.confidence + second) else None
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
