"""`python -m stt_gateway granian` or `python -m stt_gateway uvicorn`."""

import argparse
import json
import os
import platform
import sys
from importlib.metadata import version

from pydantic import ValidationError

from . import board
from .config import Settings, one_line
from .metrics import create_board
from .servers import run_granian, run_uvicorn

_SERVERS = {"granian": run_granian, "uvicorn": run_uvicorn}
_LIBRARIES = ("fastapi", "starlette", "pydantic", "uvloop", "httpx", "httpcore", "h2", "prometheus-client")
_SERVER_LIBRARIES = {"granian": ("granian",), "uvicorn": ("uvicorn", "httptools", "websockets")}


def start_line(server: str, settings: Settings) -> str:
    """One JSON object on one line: what the gateway runs on."""
    return json.dumps(
        {
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            "server": server,
            "libraries": {name: version(name) for name in (*_SERVER_LIBRARIES[server], *_LIBRARIES)},
            "workers": settings.worker_threads,
            "port": settings.port,
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="stt_gateway")
    parser.add_argument("server", choices=_SERVERS)
    server = parser.parse_args().server
    try:
        settings = Settings()
    except ValidationError as error:
        print(one_line(error), file=sys.stderr)
        return 2
    print(start_line(server, settings), flush=True)
    os.environ[board.VARIABLE] = create_board(settings.worker_threads)
    _SERVERS[server](settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
