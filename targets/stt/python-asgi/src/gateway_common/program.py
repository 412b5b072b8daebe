"""A gateway as a program: the environment is read and judged before anything else is even imported."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .variables import ConfigError, ServerConfig

if TYPE_CHECKING:
    from .worker import Service

AnyConfig = TypeVar("AnyConfig", bound=ServerConfig)


class Gateway(NamedTuple):
    """What a gateway consists of."""

    # Named in the start line.
    libraries: tuple[str, ...]
    # Called in a worker, with its number.
    make_service: "Callable[[int], Service]"
    # A worker has died: called with its number in the process above.
    forget_worker: Callable[[int], None]


def run(read_config: Callable[[], AnyConfig], make_gateway: Callable[[AnyConfig], Gateway]) -> int:
    """Runs a gateway; returns its exit code."""
    try:
        config = read_config()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    # These imports take most of a second, which a bad value need not wait for.
    gateway = make_gateway(config)
    from .supervisor import serve
    from .versions import is_gil_enabled, start_line

    if config.worker_kind == "threads" and is_gil_enabled():
        print("WORKER_KIND='threads': needs free-threaded CPython with its GIL off; here it is on", file=sys.stderr)
        return 2
    print(start_line(config, gateway.libraries), flush=True)
    return serve(config, gateway)
