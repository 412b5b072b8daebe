"""The environment variables of the contract. A bad value is one line that names the variable, and exit code 2."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .session.audio import OverflowPolicy

MILLISECONDS_MAX = 1_000_000_000
COUNT_MAX = 2**63 - 1

# A violation must be answered within 500 ms, so no socket may rest longer than half of that.
READ_PACE_MS_MAX = 250


class ConfigError(Exception):
    """A variable whose value cannot be used; its text is one line."""


@dataclass(frozen=True, slots=True)
class InferenceUrl:
    """Where the inference server is."""

    host: str
    port: int
    path: str
    authority: str


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a gateway; times in seconds."""

    port: int
    workers: int
    inference_url: InferenceUrl
    inference_connections: int
    inference_timeout_s: float
    flush_interval_s: float
    flush_phase_jitter_s: float
    cpu_passes: int
    model_delay_ms: int
    sessions_max: int
    buffer_frames_max: int
    overflow_policy: OverflowPolicy
    jobs_max: int
    outbox_messages_max: int
    start_timeout_s: float
    drain_timeout_s: float
    read_pace_s: float
    auth_token: str
    event_loop: str
    worker_kind: str

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Reads all variables; raises `ConfigError` for the first that is bad."""
        read = _Reader(environment)
        workers = read.number("WORKER_THREADS", _cores(), 1, 1024)
        return cls(
            port=read.number("PORT", 3000, 1, 65_535),
            workers=workers,
            inference_url=read.url("INFERENCE_URL", "http://127.0.0.1:9000"),
            # A connection belongs to one event loop, so this many in all are at least one for each.
            inference_connections=read.number("INFERENCE_HTTP_CLIENTS", workers, 1, 4096),
            inference_timeout_s=read.seconds("INFERENCE_TIMEOUT_MS", 5000, 1),
            flush_interval_s=read.seconds("FLUSH_INTERVAL_MS", 1000, 1),
            flush_phase_jitter_s=read.seconds("FLUSH_PHASE_JITTER_MS", 1000, 0),
            cpu_passes=read.number("CPU_PASSES", 4, 1, 2**32 - 1),
            model_delay_ms=read.number("MODEL_DELAY_MS", 75, 0, COUNT_MAX),
            sessions_max=read.number("MAX_SESSIONS", 0, 0, COUNT_MAX),
            buffer_frames_max=read.number("MAX_BUFFER_FRAMES", 500, 1, 1_000_000),
            overflow_policy=read.policy("OVERFLOW_POLICY"),
            jobs_max=read.number("MAX_INFLIGHT_JOBS", 0, 0, COUNT_MAX),
            outbox_messages_max=read.number("OUTBOX_MESSAGES", 4, 1, 1_000_000),
            start_timeout_s=read.seconds("START_TIMEOUT_MS", 10_000, 1),
            drain_timeout_s=read.seconds("DRAIN_TIMEOUT_MS", 5000, 0),
            read_pace_s=read.seconds("READ_PACE_MS", 0, 0, READ_PACE_MS_MAX),
            auth_token=environment.get("AUTH_TOKEN", ""),
            event_loop=read.choice("EVENT_LOOP", "auto", ("auto", "uvloop", "asyncio")),
            worker_kind=read.choice("WORKER_KIND", "processes", ("processes", "threads")),
        )


class _Reader:
    """Typed values out of an environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def number(self, name: str, default: int, least: int, most: int) -> int:
        text = self._environment.get(name)
        if text is None:
            return default
        # int() would take " 1 ", "1_000", "+1" and digits of other scripts, and refuse very long ones in words of its own.
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else -1
        if not least <= value <= most:
            raise _bad(name, text, f"give a whole number from {least} to {most}")
        return value

    def seconds(self, name: str, default_ms: int, least_ms: int, most_ms: int = MILLISECONDS_MAX) -> float:
        return self.number(name, default_ms, least_ms, most_ms) / 1000

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self._environment.get(name, default)
        if text not in choices:
            raise _bad(name, text, f"give {', '.join(choices[:-1])} or {choices[-1]}")
        return text

    def policy(self, name: str) -> OverflowPolicy:
        return OverflowPolicy(self.choice(name, "drop_oldest", tuple(policy.value for policy in OverflowPolicy)))

    def url(self, name: str, default: str) -> InferenceUrl:
        text = self._environment.get(name, default)
        problem = "give http://host[:port][/path]"
        try:
            url = urlsplit(text)
            host, port = url.hostname, url.port or 80
        except ValueError:
            raise _bad(name, text, problem) from None
        odd = url.query or url.fragment or url.username is not None or not text.isascii() or not text.isprintable()
        if url.scheme != "http" or not host or odd or " " in text:
            raise _bad(name, text, problem)
        return InferenceUrl(host, port, f"{url.path.rstrip('/')}/infer", url.netloc)


def _bad(name: str, value: str, problem: str) -> ConfigError:
    # ascii() keeps the line one line, whatever the value is.
    return ConfigError(f"{name}={value!a}: {problem}")


def _cores() -> int:
    return len(os.sched_getaffinity(0))
