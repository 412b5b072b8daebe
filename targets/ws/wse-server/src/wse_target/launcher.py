"""The engine, the thread that drains its events, the HTTP surface, and the end."""

import math
import signal
import socket
import sys
import threading
import time
import traceback

from wse_server import RustWSEServer

from .config import Config
from .events import Application
from .metrics import render
from .surface import Surface

# The engine's default is 1000; what a machine holds is to be found, not set.
CONNECTIONS_MAX = 10_000_000

# Events that one call takes, under one hold of the GIL.
BATCH_EVENTS_MAX = 1024

# How long a call waits for a first event.
BATCH_WAIT_MS = 50

START_TIMEOUT_S = 10.0

# The share of the drain's time that clients have to answer their close; the rest is for the end.
DRAIN_SHARE = 0.8

_POLL_S = 0.02

_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class Launcher:
    """Runs the engine until SIGTERM."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._server = RustWSEServer(
            "0.0.0.0",
            config.port,
            max_connections=CONNECTIONS_MAX,
            jwt_secret=config.jwt_secret,
            jwt_issuer=config.jwt_issuer,
            jwt_audience=config.jwt_audience,
            max_message_size=config.message_bytes_max,
        )
        self._application = Application(self._server)
        self._drainer = threading.Thread(target=self._drain_events, name="drain", daemon=True)
        self._is_ending = False

    def run(self) -> int:
        """Serves; returns the exit code."""
        # Blocked before the engine has threads, which inherit it: the signals wait for sigtimedwait().
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        ports = self._config.port, self._config.metrics_port
        try:
            # The engine only logs that its port is taken, so it is tried first.
            socket.create_server(("", ports[0])).close()
            surface = Surface(ports[1], self._is_ready, self._render)
        except OSError as error:
            print(f"ports {ports[0]} and {ports[1]}: {error.strerror}", file=sys.stderr)
            return 1
        # Without it the engine parses messages and hands them to nobody.
        self._server.enable_drain_mode()
        self._server.start()
        if not self._wait_until_running():
            print(f"port {ports[0]}: the engine does not listen", file=sys.stderr)
            return 1
        self._drainer.start()
        surface.start()
        while signal.sigtimedwait(_SIGNALS, 0.2) is None:
            if not self._drainer.is_alive():
                print("the thread that drains events has ended", file=sys.stderr)
                return 1
        self._drain_connections()
        return 0

    def _wait_until_running(self) -> bool:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._server.is_running():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _is_ready(self) -> bool:
        return not self._is_ending and self._drainer.is_alive() and self._server.is_running()

    def _render(self) -> str:
        return render(self._application.tally, self._server.prometheus_metrics())

    def _drain_events(self) -> None:
        take, drain = self._application.take, self._server.drain_inbound
        try:
            while True:
                # Waits without the GIL.
                take(drain(BATCH_EVENTS_MAX, BATCH_WAIT_MS))
        except BaseException:  # noqa: BLE001  # the main thread sees that it has ended
            traceback.print_exc()

    def _drain_connections(self) -> None:
        self._is_ending = True
        budget_s = self._config.drain_timeout_s * DRAIN_SHARE
        # Accepts nobody any more, and sends a close to all; returns at once.
        self._server.drain(1001, "going away", math.ceil(budget_s))
        deadline = time.monotonic() + budget_s
        while self._server.get_connection_count() > 0 and time.monotonic() < deadline:
            time.sleep(_POLL_S)
