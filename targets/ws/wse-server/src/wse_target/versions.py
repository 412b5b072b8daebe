"""The start line: what this server runs on."""

import json
import platform
from importlib.metadata import version

from .config import Config


def start_line(config: Config) -> str:
    """One JSON object on one line."""
    return json.dumps(
        {
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            # Of the package; the module's own `__version__` lags behind it.
            "libraries": {"wse-server": version("wse-server")},
            "worker_threads": config.worker_threads,
            "port": config.port,
            "metrics_port": config.metrics_port,
        }
    )
