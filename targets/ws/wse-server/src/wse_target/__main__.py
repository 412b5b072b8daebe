"""`python -m wse_target`: the environment is read and judged before the engine is even loaded."""

import os
import sys

from .config import Config, ConfigError


def main() -> int:
    try:
        config = Config.from_env()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    # Read by the engine's runtime and by its log when it starts; it has no arguments for them.
    os.environ["TOKIO_WORKER_THREADS"] = str(config.worker_threads)
    os.environ.setdefault("RUST_LOG", "error")
    from .launcher import Launcher
    from .versions import start_line

    print(start_line(config), flush=True)
    return Launcher(config).run()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The engine's threads still run. Its stop() sleeps two seconds, which a drain may not have, and has nothing left to do.
    os._exit(code)
