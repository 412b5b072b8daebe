"""The start line: what a gateway runs on."""

import json
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from .variables import ServerConfig
from .worker import loop_factory


def is_gil_enabled() -> bool:
    """Whether threads take turns; asked after all imports, for an extension module may have switched it on."""
    asked = getattr(sys, "_is_gil_enabled", None)
    return asked is None or bool(asked())


def start_line(config: ServerConfig, names: Iterable[str]) -> str:
    """One JSON object on one line. Of the named libraries, those that are installed are told."""
    libraries = {}
    for name in names:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            continue
    return json.dumps(
        {
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            "gil": "on" if is_gil_enabled() else "off",
            "event_loop": loop_factory(config.event_loop).__module__.partition(".")[0],
            "libraries": libraries,
            "workers": config.workers,
            "worker_kind": config.worker_kind,
            "port": config.port,
        }
    )
