"""The environment variables of the contract."""

import os
from enum import StrEnum
from typing import Annotated

from pydantic import AnyUrl, Field, SecretStr, UrlConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

_Milliseconds = Annotated[int, Field(ge=0, le=1_000_000_000)]
_PositiveMilliseconds = Annotated[int, Field(ge=1, le=1_000_000_000)]
_Limit = Annotated[int, Field(ge=0, le=2**63 - 1)]
_HttpUrl = Annotated[AnyUrl, UrlConstraints(allowed_schemes=["http"], host_required=True)]


class OverflowPolicy(StrEnum):
    """What a full input buffer does with one more frame."""

    DROP_OLDEST = "drop_oldest"
    DROP_NEWEST = "drop_newest"
    CLOSE = "close"


def _cores() -> int:
    return len(os.sched_getaffinity(0))


class Settings(BaseSettings):
    """One field for each variable, by the variable's name. 0 means no limit."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    port: int = Field(3000, ge=1, le=65_535)
    worker_threads: int = Field(default_factory=_cores, ge=1, le=1024)
    inference_url: _HttpUrl = AnyUrl("http://127.0.0.1:9000")
    inference_http_clients: int = Field(1, ge=1, le=1024)
    inference_timeout_ms: _PositiveMilliseconds = 5000
    flush_interval_ms: _PositiveMilliseconds = 1000
    flush_phase_jitter_ms: _Milliseconds = 1000
    cpu_passes: int = Field(4, ge=1, le=2**32 - 1)
    max_sessions: _Limit = 0
    max_buffer_frames: int = Field(500, ge=1, le=1_000_000)
    overflow_policy: OverflowPolicy = OverflowPolicy.DROP_OLDEST
    max_inflight_jobs: _Limit = 0
    outbox_messages: int = Field(4, ge=1, le=1_000_000)
    start_timeout_ms: _PositiveMilliseconds = 10_000
    drain_timeout_ms: _Milliseconds = 5000
    auth_token: SecretStr = SecretStr("")


def one_line(error: ValidationError) -> str:
    """The first bad variable, with its value and what is wrong with it."""
    first = error.errors(include_url=False)[0]
    # ascii() keeps the line one line, whatever the value is.
    return f"{first['loc'][0]}".upper() + f"={first['input']!a}: {first['msg']}"
