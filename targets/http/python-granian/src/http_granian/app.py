"""The routes, as an RSGI application."""

import asyncio
import json
import re
import zlib
from typing import TypeAlias

from granian.rsgi import HTTPProtocol, Scope  # type: ignore[attr-defined]  # it is exported, by the specification of RSGI

from .counters import CONTENT_TYPE, Counters

BYTES_MAX = 1_048_576

# The largest number that every language's numbers hold.
NUMBER_MAX = 2**53 - 1

# The first N bytes of it are the answer to /bytes/N.
PATTERN = b"0123456789abcdef" * (BYTES_MAX // 16)

Headers: TypeAlias = list[tuple[str, str]]

TEXT: Headers = [("content-type", "text/plain")]
BINARY: Headers = [("content-type", "application/octet-stream")]
JSON: Headers = [("content-type", "application/json")]
METRICS: Headers = [("content-type", CONTENT_TYPE)]

# Without leading zeros, signs, and digits of other scripts.
_WHOLE = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)

# The spaces that json.dumps puts after commas and colons are not part of the contract.
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Application:
    """One per server; each worker has its copy."""

    def __init__(self, body_bytes_max: int, counters: Counters) -> None:
        self._body_bytes_max = body_bytes_max
        self._counters = counters

    def __rsgi_init__(self, _loop: asyncio.AbstractEventLoop) -> None:
        """Granian calls it in each worker that starts."""
        self._counters.take()

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Granian calls it for each request."""
        self._counters.count()
        path = scope.path
        if scope.http_version == "1.1" and "host" not in scope.headers:
            # Granian leaves it to the application.
            protocol.response_str(400, TEXT, "Host is missing\n")
        elif path == "/sum":
            if scope.method == "POST":
                await self._sum(scope, protocol)
            else:
                protocol.response_str(405, TEXT, "method not allowed\n")
        elif scope.method in ("GET", "HEAD"):
            self._read(path, protocol)
        else:
            protocol.response_str(405, TEXT, "method not allowed\n")

    def _read(self, path: str, protocol: HTTPProtocol) -> None:
        if path in ("/", "/healthz"):
            protocol.response_str(200, TEXT, "ok")
        elif (size := _number(path, "/bytes/", 1, BYTES_MAX)) is not None:
            protocol.response_bytes(200, BINARY, PATTERN[:size])
        elif (number := _number(path, "/json/", 0, NUMBER_MAX)) is not None:
            item = {"id": number, "name": f"item {number}", "even": number % 2 == 0}
            protocol.response_str(200, JSON, _encode(item))
        elif path == "/metrics":
            protocol.response_str(200, METRICS, self._counters.render())
        else:
            protocol.response_str(404, TEXT, "not found\n")

    async def _sum(self, scope: Scope, protocol: HTTPProtocol) -> None:
        # Granian has checked that it is a number.
        if int(scope.headers.get("content-length", 0)) <= self._body_bytes_max:
            # Iterating over the parts would end without an error where the body breaks off; this raises.
            body = await protocol()
            if len(body) <= self._body_bytes_max:
                protocol.response_str(200, TEXT, f"{zlib.crc32(body):08x} {len(body)}")
                return
        protocol.response_str(413, TEXT, "content too large\n")


def _number(path: str, prefix: str, least: int, most: int) -> int | None:
    """The number that the rest of the path is, if it is one."""
    if not path.startswith(prefix):
        return None
    text = path[len(prefix) :]
    if _WHOLE.fullmatch(text) is None:
        return None
    value = int(text)
    return value if least <= value <= most else None
