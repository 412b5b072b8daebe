"""Typed values out of environment variables. A bad value is one line that names the variable, and exit code 2."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

MILLISECONDS_MAX: Final = 1_000_000_000
COUNT_MAX: Final = 2**63 - 1


class ConfigError(Exception):
    """A variable whose value cannot be used; its text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the workers of any gateway need to know; times in seconds."""

    port: int
    workers: int
    drain_timeout_s: float
    auth_token: str
    event_loop: str
    worker_kind: str


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """Where a server is; a path begins with a slash and does not end with one."""

    host: str
    port: int
    path: str
    authority: str


class Variables:
    """Reads an environment; raises `ConfigError` for a value that is bad."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment

    def text(self, name: str, default: str = "") -> str:
        return self._environment.get(name, default)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        text = self._environment.get(name)
        if text is None:
            return default
        # int() would take " 1 ", "1_000", "+1" and digits of other scripts, and refuse very long ones in words of its own.
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else -1
        if not least <= value <= most:
            raise bad(name, text, f"give a whole number from {least} to {most}")
        return value

    def seconds(self, name: str, default_ms: int, least_ms: int, most_ms: int = MILLISECONDS_MAX) -> float:
        return self.number(name, default_ms, least_ms, most_ms) / 1000

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self._environment.get(name, default)
        if text not in choices:
            raise bad(name, text, f"give {', '.join(choices[:-1])} or {choices[-1]}")
        return text

    def url(self, name: str, default: str) -> BaseUrl:
        text = self._environment.get(name, default)
        url = parse_url(text)
        if url is None:
            raise bad(name, text, "give http://host[:port][/path]")
        return url

    def workers(self) -> int:
        return self.number("WORKER_THREADS", len(os.sched_getaffinity(0)), 1, 1024)

    def event_loop(self) -> str:
        return self.choice("EVENT_LOOP", "auto", ("auto", "uvloop", "asyncio"))


def parse_url(text: str) -> BaseUrl | None:
    """A plain `http` URL; `None` if it is none, or has what a base does not need."""
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port or 80
    except ValueError:
        return None
    odd = url.query or url.fragment or url.username is not None or not text.isascii() or not text.isprintable()
    if url.scheme != "http" or not host or odd or " " in text:
        return None
    return BaseUrl(host, port, url.path.rstrip("/"), url.netloc)


def bad(name: str, value: str, problem: str) -> ConfigError:
    """The error of a variable."""
    # ascii() keeps the line one line, whatever the value is.
    return ConfigError(f"{name}={value!a}: {problem}")
