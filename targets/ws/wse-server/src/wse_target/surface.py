"""The HTTP surface, on a port of its own: the engine owns the other one."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .metrics import CONTENT_TYPE


class Surface:
    """Answers `/healthz` and `/metrics` on threads of its own."""

    def __init__(self, port: int, is_ready: Callable[[], bool], render: Callable[[], str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            # Whoever asks every few milliseconds need not connect anew.
            protocol_version = "HTTP/1.1"
            # Head and body in one write: the second of two would wait for the client's delayed acknowledgement (Nagle).
            wbufsize = -1

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/healthz":
                    ready = is_ready()
                    status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
                    self._answer(status, "text/plain", "ok" if ready else "not ready")
                elif path == "/metrics":
                    self._answer(HTTPStatus.OK, CONTENT_TYPE, render())
                else:
                    self._answer(HTTPStatus.NOT_FOUND, "text/plain", "")

            def _answer(self, status: HTTPStatus, content_type: str, text: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class has it so
                """Requests are not logged."""

        self._server = ThreadingHTTPServer(("", port), Handler)
        self._server.daemon_threads = True

    def start(self) -> None:
        """Serves until the process ends."""
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()
