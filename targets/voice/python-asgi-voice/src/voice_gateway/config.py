"""The environment variables of the contract. A bad value is one line that names the variable, and exit code 2."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from gateway_common.variables import COUNT_MAX, BaseUrl, ServerConfig, Variables, bad, parse_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerConfig):
    """The configuration of a gateway; times in seconds."""

    provider_urls: tuple[BaseUrl, ...]
    provider_key: str
    sessions_max: int
    sessions_per_address_max: int
    upgrades_per_second_max: int
    ready_s: float
    idle_s: float
    tts_first_s: float
    tts_gap_s: float
    stt_pong_s: float
    audio_buffer_ms: int
    out_buffer_bytes: int

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Reads all variables; raises `ConfigError` for the first that is bad."""
        read = Variables(environment)
        return cls(
            port=read.number("PORT", 3001, 1, 65_535),
            workers=read.workers(),
            provider_urls=_urls(read, "PROVIDER_URLS", "http://127.0.0.1:9100"),
            provider_key=_field_value(read, "PROVIDER_KEY"),
            sessions_max=read.number("MAX_SESSIONS", 0, 0, COUNT_MAX),
            sessions_per_address_max=read.number("MAX_SESSIONS_PER_ADDRESS", 0, 0, COUNT_MAX),
            upgrades_per_second_max=read.number("RATE_LIMIT_RPS", 0, 0, COUNT_MAX),
            auth_token=read.text("AUTH_TOKEN"),
            drain_timeout_s=read.seconds("DRAIN_TIMEOUT_MS", 5000, 0),
            ready_s=read.seconds("READY_MS", 30_000, 1),
            idle_s=read.seconds("IDLE_MS", 300_000, 1),
            tts_first_s=read.seconds("TTS_FIRST_MS", 10_000, 1),
            tts_gap_s=read.seconds("TTS_GAP_MS", 2000, 1),
            stt_pong_s=read.seconds("STT_PONG_MS", 5000, 1),
            audio_buffer_ms=read.number("AUDIO_BUFFER_MS", 5000, 0, 600_000),
            out_buffer_bytes=read.number("OUT_BUFFER_BYTES", 1_048_576, 1, 2**40),
            event_loop=read.event_loop(),
            worker_kind="processes",
        )


def _urls(read: Variables, name: str, default: str) -> tuple[BaseUrl, ...]:
    text = read.text(name, default)
    urls = tuple(parse_url(part.strip()) for part in text.split(","))
    found = tuple(url for url in urls if url is not None)
    if len(found) < len(urls):
        raise bad(name, text, "give http://host[:port][/path], several with commas between")
    return found


def _field_value(read: Variables, name: str) -> str:
    """Text that can stand in a header field."""
    text = read.text(name)
    if not text.isascii() or not text.isprintable():
        raise bad(name, text, "give printable ASCII characters")
    return text
