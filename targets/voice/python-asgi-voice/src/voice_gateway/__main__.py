"""`python -m voice_gateway`."""

import sys

from gateway_common.program import Gateway, run

from .config import Config


def make_gateway(config: Config) -> Gateway:
    from .service import LIBRARIES, Service
    from .shared import Shares

    shares = Shares(config.workers)
    return Gateway(LIBRARIES, lambda worker: Service(config, shares.open(worker)), shares.forget)


sys.exit(run(Config.from_env, make_gateway))
