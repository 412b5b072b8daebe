"""The start line: what this server runs on."""

import json
import platform
from importlib.metadata import version

from .config import Config

_LIBRARIES = ("granian", "uvloop")


def start_line(config: Config) -> str:
    """One JSON object on one line."""
    return json.dumps(
        {
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            "event_loop": "uvloop",
            "libraries": {name: version(name) for name in _LIBRARIES},
            "workers": config.workers,
            "port": config.port,
        }
    )
