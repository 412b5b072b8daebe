"""`python -m http_granian`: the environment is read and judged before anything else is even imported."""

import sys

from .config import Config, ConfigError


def main() -> int:
    try:
        config = Config.from_env()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    # They take a while to import, which a bad value need not wait for.
    from .server import serve
    from .versions import start_line

    print(start_line(config), flush=True)
    serve(config)
    return 0


if __name__ == "__main__":
    sys.exit(main())
