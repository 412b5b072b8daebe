"""The start line: what this gateway runs on."""

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from .config import Config
from .worker import loop_factory

_LIBRARIES = (
    *("uvicorn", "fastapi", "starlette", "pydantic", "uvloop", "httptools", "h11"),
    *("websockets", "h2", "hpack", "hyperframe"),
)


def is_gil_enabled() -> bool:
    """Whether threads take turns; asked after all imports, for an extension module may have switched it on."""
    asked = getattr(sys, "_is_gil_enabled", None)
    return asked is None or bool(asked())


def start_line(config: Config) -> str:
    """One JSON object on one line."""
    libraries = {}
    for name in _LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            continue
    return json.dumps(
        {
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            "gil": "on" if is_gil_enabled() else "off",
            "event_loop": loop_factory(config).__module__.partition(".")[0],
            "libraries": libraries,
            "workers": config.workers,
            "worker_kind": config.worker_kind,
            "port": config.port,
        }
    )
