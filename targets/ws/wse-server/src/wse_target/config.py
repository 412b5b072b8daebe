"""The environment variables of the contract. A bad value is one line that names the variable, and exit code 2."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

MILLISECONDS_MAX = 1_000_000_000

# What HS256 asks of a secret, and the engine of its own.
SECRET_BYTES_MIN = 32


class ConfigError(Exception):
    """A variable whose value cannot be used; its text is one line."""


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration; times in seconds."""

    port: int
    metrics_port: int
    worker_threads: int
    drain_timeout_s: float
    message_bytes_max: int
    jwt_secret: bytes
    jwt_issuer: str
    jwt_audience: str

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Reads all variables; raises `ConfigError` for the first that is bad."""
        return cls(
            port=_number(environment, "PORT", 3000, 1, 65_535),
            metrics_port=_number(environment, "METRICS_PORT", 3001, 1, 65_535),
            worker_threads=_number(environment, "WORKER_THREADS", 1, 1, 1024),
            drain_timeout_s=_number(environment, "DRAIN_TIMEOUT_MS", 5000, 1, MILLISECONDS_MAX) / 1000,
            message_bytes_max=_number(environment, "MAX_MESSAGE_BYTES", 1_048_576, 1, 2**31 - 1),
            # The values that clients of this engine use for measurements: for a server on the loopback, and no secrets.
            jwt_secret=_secret(environment, "WSE_SECRET", "bench-secret-key-for-testing-only"),
            jwt_issuer=environment.get("WSE_ISSUER", "wse-bench"),
            jwt_audience=environment.get("WSE_AUDIENCE", "wse-bench"),
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


def _secret(environment: Mapping[str, str], name: str, default: str) -> bytes:
    secret = environment.get(name, default).encode(errors="surrogateescape")
    if len(secret) < SECRET_BYTES_MIN:
        # The value itself stays out of logs.
        raise ConfigError(f"{name}: give {SECRET_BYTES_MIN} bytes or more")
    return secret
