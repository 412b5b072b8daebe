"""The servers that run the application, each with its own workers."""

import math

from .config import Settings

APP = "stt_gateway.app:app"
BACKLOG = 4096
MESSAGE_BYTES_MAX = 65_536


def run_granian(settings: Settings) -> None:
    from granian import Granian
    from granian.constants import Interfaces, Loops
    from granian.log import LogLevels

    Granian(
        APP,
        address="0.0.0.0",
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.worker_threads,
        loop=Loops.uvloop,
        backlog=BACKLOG,
        # A session is a request that lasts; by default a worker takes 1024 / workers of them.
        backpressure=16_384,
        log_level=LogLevels.warning,
        workers_kill_timeout=settings.drain_timeout_ms // 1000 + 1,
    ).serve()


def run_uvicorn(settings: Settings) -> None:
    import uvicorn

    uvicorn.run(
        APP,
        host="0.0.0.0",
        port=settings.port,
        workers=settings.worker_threads,
        loop="uvloop",
        http="httptools",
        backlog=BACKLOG,
        ws_max_size=MESSAGE_BYTES_MAX,
        # Audio does not shrink.
        ws_per_message_deflate=False,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=math.ceil(settings.drain_timeout_ms / 1000),
    )
