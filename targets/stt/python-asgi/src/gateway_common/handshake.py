"""The WebSocket handshake as uvicorn's `ws` protocol and as ASGI has it, with one extension: the handover.

The application decides on an upgrade by the usual ASGI messages: `websocket.accept`, or a denial response (the extension
`websocket.http.response`). What ASGI then offers is one `receive()` per message: a dict, a queue and a task switch for each
of fifty frames a second and session, by a server whose close codes are its own. So the scope has the extension
`transport.handover`: after the accept the application names the asyncio protocol that gets the connection, and returns.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

from uvicorn.config import Config
from uvicorn.server import ServerState

from .websocket import accept_key

HANDOVER = "transport.handover"

MakeProtocol = Callable[[asyncio.Transport], asyncio.Protocol]
Headers = list[tuple[bytes, bytes]]


class Handshake(asyncio.Protocol):
    """An upgrade request, from its arrival to its answer. uvicorn makes one, and feeds it the request again."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._app = cast("Callable[..., Any]", config.loaded_app)
        self._connections = cast("set[Any]", server_state.connections)
        self._tasks = server_state.tasks
        self._app_state = app_state
        # Set by connection_made(), which comes first.
        self._transport: asyncio.Transport
        self._key = ""
        self._is_accepted = False
        self._is_handed_over = False
        self._denial: dict[str, Any] = {}
        self._response: bytes | None = None
        self._receives = 0
        self._lost = asyncio.Event()

    # What uvicorn and the transport call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        # uvicorn's HTTP protocol, which is called no more, has its parser, and that its methods. Without this a connection
        # leaves a cycle of 27 objects behind, which would live as long as the session, and then until the collector.
        http = self._transport.get_protocol()
        if hasattr(http, "parser"):
            http.parser = None

    def data_received(self, data: bytes) -> None:
        # A client has nothing to say before it is answered.
        self._transport.pause_reading()
        method, target, headers = _parse(data)
        problem = self._check(method, headers)
        if problem is not None:
            self._deny(*problem)
            return
        task = asyncio.get_running_loop().create_task(self._run(self._scope(target, headers)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        self._connections.discard(self)

    def shutdown(self) -> None:
        """The server ends; an upgrade that has not been answered is refused."""
        if not self._is_accepted:
            self._deny(HTTPStatus.SERVICE_UNAVAILABLE, [])

    # The ASGI application

    async def _run(self, scope: dict[str, Any]) -> None:
        try:
            await self._app(scope, self._receive, self._send)
        finally:
            if not self._is_handed_over and self._response is None:
                self._transport.abort()

    async def _receive(self) -> dict[str, Any]:
        self._receives += 1
        if self._receives == 1:
            return {"type": "websocket.connect"}
        await self._lost.wait()
        return {"type": "websocket.disconnect", "code": 1006, "reason": ""}

    async def _send(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "websocket.accept":
            self._accept(message.get("headers", ()))
        elif kind == "websocket.http.response.start":
            self._denial = message
        elif kind == "websocket.http.response.body":
            self._deny(HTTPStatus(self._denial["status"]), list(self._denial["headers"]), message.get("body", b""))
        elif kind == "websocket.close" and not self._is_accepted:
            self._deny(HTTPStatus.FORBIDDEN, [])
        else:
            raise RuntimeError(f"{kind}: this server hands connections over and sends no messages itself")

    def _accept(self, headers: Any) -> None:
        self._is_accepted = True
        lines = [b"HTTP/1.1 101 Switching Protocols", b"upgrade: websocket", b"connection: Upgrade"]
        lines.append(b"sec-websocket-accept: " + accept_key(self._key).encode())
        lines += (name + b": " + value for name, value in headers)
        self._transport.write(b"\r\n".join([*lines, b"", b""]))

    def _handover(self, make_protocol: MakeProtocol) -> None:
        if not self._is_accepted or self._is_handed_over:
            raise RuntimeError("handed over before the accept, or twice")
        self._is_handed_over = True
        self._connections.discard(self)
        protocol = make_protocol(self._transport)
        if self._lost.is_set():
            protocol.connection_lost(None)
            return
        self._transport.set_protocol(protocol)
        self._transport.resume_reading()

    def _deny(self, status: HTTPStatus, headers: Headers, body: bytes = b"") -> None:
        if self._response is not None:
            return
        if not any(name.lower() == b"content-length" for name, _ in headers):
            headers.append((b"content-length", str(len(body)).encode()))
        headers.append((b"connection", b"close"))
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
        lines += (name + b": " + value for name, value in headers)
        self._response = b"\r\n".join([*lines, b"", body])
        self._transport.write(self._response)
        self._transport.close()

    def _check(self, method: bytes, headers: Headers) -> tuple[HTTPStatus, Headers] | None:
        """What RFC 6455, 4.2.1 demands beyond what uvicorn has looked at."""
        fields = dict(headers)
        key = fields.get(b"sec-websocket-key", b"")
        if fields.get(b"sec-websocket-version") != b"13":
            return HTTPStatus.UPGRADE_REQUIRED, [(b"sec-websocket-version", b"13")]
        try:
            is_key = len(base64.b64decode(key, validate=True)) == 16
        except binascii.Error:
            is_key = False
        if method != b"GET" or not is_key:
            return HTTPStatus.BAD_REQUEST, []
        self._key = key.decode()
        return None

    def _scope(self, target: bytes, headers: Headers) -> dict[str, Any]:
        path, _, query = target.partition(b"?")
        return {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": self._transport.get_extra_info("peername"),
            "server": self._transport.get_extra_info("sockname"),
            "subprotocols": [],
            "state": self._app_state.copy(),
            "extensions": {"websocket.http.response": {}, HANDOVER: {"handover": self._handover}},
        }


def _parse(request: bytes) -> tuple[bytes, bytes, Headers]:
    """A request's head, which uvicorn has parsed, checked and written anew: names in lower case, one field a line."""
    first, *lines = request.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, target, _ = first.split(b" ")
    fields = (line.partition(b":") for line in lines)
    return method, target, [(name, value.strip()) for name, _, value in fields]
