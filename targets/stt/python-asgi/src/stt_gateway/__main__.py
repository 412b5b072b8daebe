"""`python -m stt_gateway`: the environment is read and judged before anything else is even imported."""

import sys

from .config import Config, ConfigError


def main() -> int:
    try:
        config = Config.from_env()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    # They take most of a second to import, which a bad value need not wait for.
    from .supervisor import serve
    from .versions import is_gil_enabled, start_line

    if config.worker_kind == "threads" and is_gil_enabled():
        print("WORKER_KIND='threads': needs free-threaded CPython with its GIL off; here it is on", file=sys.stderr)
        return 2
    print(start_line(config), flush=True)
    return serve(config)


sys.exit(main())
