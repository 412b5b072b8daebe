"""`python -m stt_gateway`."""

import sys

from gateway_common.program import Gateway, run

from .config import Config


def make_gateway(config: Config) -> Gateway:
    from .gateway import LIBRARIES, Service
    from .shared import Ledger

    ledger = Ledger(config.workers)
    return Gateway(LIBRARIES, lambda worker: Service(config, ledger.open(worker)), ledger.forget_gauges)


sys.exit(run(Config.from_env, make_gateway))
