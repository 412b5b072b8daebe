"""Granian, configured."""

import multiprocessing
from typing import Any

from granian import Granian
from granian.constants import Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels

from .app import Application
from .config import Config
from .counters import Counters

BACKLOG = 4096

# Connections of one worker. Granian accepts no more than that at a time.
BACKPRESSURE = 16_384

# It also closes what is idle; the contract asks for a minute, which is the most that Granian takes.
HEADER_READ_TIMEOUT_MS = 60_000

# The share of the drain's time after which a worker is killed; the rest is for the exit.
DRAIN_SHARE = 0.8


def serve(config: Config) -> None:
    """Returns after SIGTERM or SIGINT, when all that was in flight is answered."""
    # Workers have the counters from their birth.
    multiprocessing.set_start_method("fork")
    application = Application(config.body_bytes_max, Counters(config.workers))

    # Granian takes an object with __rsgi__, but its types ask for a function.
    def load(_target: str) -> Any:
        return application

    server = Granian(
        "http_granian.app",
        address="0.0.0.0",
        port=config.port,
        interface=Interfaces.RSGI,
        workers=config.workers,
        loop=Loops.uvloop,
        websockets=False,
        backlog=BACKLOG,
        backpressure=BACKPRESSURE,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_READ_TIMEOUT_MS),
        log_level=LogLevels.warning,
        workers_kill_timeout=max(1, int(config.drain_timeout_s * DRAIN_SHARE)),
    )
    server.serve(target_loader=load)
