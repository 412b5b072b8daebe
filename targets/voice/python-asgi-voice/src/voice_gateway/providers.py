"""What each provider is asked, and how: paths, bodies and keys."""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from gateway_common.variables import BaseUrl

from .messages import STT_SAMPLE_RATE, TTS_SAMPLE_RATE, SttConfig, TtsConfig, TtsProvider
from .shared import Provider

KEEP_ALIVE: Final = '{"type":"KeepAlive"}'
CLOSE_STREAM: Final = '{"type":"CloseStream"}'


class Request(NamedTuple):
    """A request over HTTP."""

    provider: Provider
    url: str
    headers: dict[str, str]
    body: bytes


def deepgram_listen(base: BaseUrl, config: SttConfig, key: str) -> tuple[str, dict[str, str]]:
    """The WebSocket that hears: its URL and headers."""
    query: dict[str, str | int] = {
        "encoding": "linear16",
        "sample_rate": STT_SAMPLE_RATE,
        "channels": 1,
        "interim_results": "true",
        "model": config.model,
        "language": config.language,
        "punctuate": "true" if config.punctuation else "false",
    }
    return f"ws://{base.authority}{base.path}/v1/listen?{_query(query)}", _token(key)


def tts_request(base: BaseUrl, config: TtsConfig, text: str, key: str) -> Request:
    """The request that speaks."""
    provider, path, key_field, body = _TTS[config.provider](config, text)
    headers = {"Content-Type": "application/json", **key_field(key)}
    return Request(provider, f"{_http(base)}{path}", headers, json.dumps(body, ensure_ascii=False).encode(errors="replace"))


def voices_request(base: BaseUrl, key: str) -> tuple[str, dict[str, str]]:
    """The request for the voices of the provider that lists them: its URL and headers."""
    return f"{_http(base)}/v1/voices", _api_key(key)


def _token(key: str) -> dict[str, str]:
    return {"Authorization": f"Token {key}"} if key else {}


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _api_key(key: str) -> dict[str, str]:
    return {"xi-api-key": key} if key else {}


def _http(base: BaseUrl) -> str:
    return f"http://{base.authority}{base.path}"


def _query(fields: dict[str, str | int]) -> str:
    return urlencode(fields, errors="replace")


# Of a request to speak: whom it asks, its path, how it shows the key, and its body.
_Parts = tuple[Provider, str, Callable[[str], dict[str, str]], dict[str, Any]]


def _deepgram(config: TtsConfig, text: str) -> _Parts:
    query = _query({"model": config.model, "encoding": "linear16", "sample_rate": TTS_SAMPLE_RATE})
    return Provider.DEEPGRAM_TTS, f"/v1/speak?{query}", _token, {"text": text}


def _elevenlabs(config: TtsConfig, text: str) -> _Parts:
    path = f"/v1/text-to-speech/{quote(config.voice_id, safe='', errors='replace')}/stream?output_format=pcm_24000"
    return Provider.ELEVENLABS_TTS, path, _api_key, {"text": text, "model_id": config.model}


def _openai(config: TtsConfig, text: str) -> _Parts:
    body = {"model": config.model, "input": text, "voice": config.voice_id, "response_format": "pcm"}
    return Provider.OPENAI_TTS, "/v1/audio/speech", _bearer, body


def _cartesia(config: TtsConfig, text: str) -> _Parts:
    body = {
        "model_id": config.model,
        "transcript": text,
        "voice": {"mode": "id", "id": config.voice_id},
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": TTS_SAMPLE_RATE},
    }
    return Provider.CARTESIA_TTS, "/tts/bytes", _bearer, body


_TTS: Final[dict[TtsProvider, Callable[[TtsConfig, str], _Parts]]] = {
    TtsProvider.DEEPGRAM: _deepgram,
    TtsProvider.ELEVENLABS: _elevenlabs,
    TtsProvider.OPENAI: _openai,
    TtsProvider.CARTESIA: _cartesia,
}
