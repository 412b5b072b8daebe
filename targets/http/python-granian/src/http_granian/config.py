"""The environment variables of the contract. A bad value is one line that names the variable, and exit code 2."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

MILLISECONDS_MAX = 1_000_000_000


class ConfigError(Exception):
    """A variable whose value cannot be used; its text is one line."""


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration; times in seconds."""

    port: int
    workers: int
    drain_timeout_s: float
    body_bytes_max: int

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Reads all variables; raises `ConfigError` for the first that is bad."""
        return cls(
            port=_number(environment, "PORT", 3000, 1, 65_535),
            workers=_number(environment, "WORKER_THREADS", 1, 1, 1024),
            drain_timeout_s=_number(environment, "DRAIN_TIMEOUT_MS", 5000, 1, MILLISECONDS_MAX) / 1000,
            body_bytes_max=_number(environment, "MAX_BODY_BYTES", 1_048_576, 1, 2**31 - 1),
        )


def _number(environment: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    # int() would take " 1 ", "1_000", "+1" and digits of other scripts, and refuse very long ones in words of its own.
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else -1
    if not least <= value <= most:
        # ascii() keeps the line one line, whatever the value is.
        raise ConfigError(f"{name}={text!a}: give a whole number from {least} to {most}")
    return value
