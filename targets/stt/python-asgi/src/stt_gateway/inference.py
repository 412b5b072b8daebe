"""Requests to the inference server: HTTP/2 over cleartext with prior knowledge, a few connections, many streams each.

`h2` is the protocol; this file is its I/O: an asyncio protocol that asks h2 what to write. httpx, which does the same by
way of httpcore, anyio and several tasks and locks per request, costs three times as much CPU (measured; see the README).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from gateway_common.variables import BaseUrl

from .session.messages import Failure, FailureKind, Inference, not_strict, parse_inference

Outcome = Inference | Failure
Callback = Callable[[Outcome], None]
Body = bytes | bytearray | memoryview

# No answer of the contract comes near it.
_ANSWER_BYTES_MAX: Final = 64 * 1024

# Our stream ids are odd and may not come near 2**31; a connection is replaced long before.
_STREAM_ID_MAX: Final = 2**31 - 1000

_TIMEOUT: Final = Failure(FailureKind.TIMEOUT, "no answer from inference in time")


def _reset(cause: str) -> Failure:
    return Failure(FailureKind.CONNECTION_RESET, f"inference connection: {cause}")


class Request:
    """One request. `cancel` makes sure that its callback is not called any more."""

    __slots__ = ("_callback", "_timer", "answer", "body", "connection", "status", "stream_id")

    def __init__(self, body: Body, callback: Callback) -> None:
        # What of the body has not been handed to h2.
        self.body: memoryview | None = memoryview(body)
        self.answer = b""
        self.status = 0
        self.stream_id = 0
        self.connection: _Connection | None = None
        self._callback: Callback | None = callback
        self._timer: asyncio.TimerHandle | None = None

    def start_timer(self, loop: asyncio.AbstractEventLoop, timeout_s: float) -> None:
        self._timer = loop.call_later(timeout_s, self._expire)

    def _expire(self) -> None:
        self._abandon()
        self.finish(_TIMEOUT)

    def cancel(self) -> None:
        """Nobody waits for the answer any more."""
        self._callback = None
        self._abandon()
        self.finish(_TIMEOUT)

    def _abandon(self) -> None:
        if self.connection is not None:
            self.connection.abandon(self)

    def finish(self, outcome: Outcome) -> None:
        """Calls the callback, once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.body = None
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(outcome)


class Client:
    """A fixed number of connections, opened when first needed and again when lost; requests take them in turn."""

    def __init__(self, url: BaseUrl, connections: int, timeout_s: float, cpu_passes: int) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._headers = (
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", url.authority),
            (":path", url.path),
            ("content-type", "application/octet-stream"),
            ("x-cpu-passes", str(cpu_passes)),
        )
        self._connections: list[_Connection | None] = [None] * connections
        self._turn = 0

    def post(self, body: Body, callback: Callback) -> Request:
        """Sends a batch; `callback` gets the outcome, not before this has returned."""
        request = Request(body, callback)
        request.start_timer(self._loop, self._timeout_s)
        turn = self._turn = (self._turn + 1) % len(self._connections)
        connection = self._connections[turn]
        if connection is None or not connection.is_usable:
            connection = self._connections[turn] = _Connection(self._loop, self._url, self._headers)
        connection.submit(request)
        return request

    def close(self) -> None:
        """Ends the connections; requests that are still in flight fail."""
        for connection in self._connections:
            if connection is not None:
                connection.end("closed")


class _Connection(asyncio.Protocol):
    """One HTTP/2 connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, url: BaseUrl, headers: tuple[tuple[str, str], ...]) -> None:
        self._loop = loop
        self._headers = headers
        self._transport: asyncio.Transport | None = None
        # What h2 checks and lower-cases is constant here, or checked by us.
        config = h2.config.H2Configuration(
            client_side=True,
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
            normalize_inbound_headers=False,
        )
        self._h2 = h2.connection.H2Connection(config)
        # For want of a connection, or of a stream.
        self._waiting: deque[Request] = deque()
        # For want of a window: begun, their bodies not wholly sent.
        self._blocked: deque[Request] = deque()
        self._streams: dict[int, Request] = {}
        self._flush_is_due = False
        # Streams begun before the server's settings are known might be more, or larger, than it allows.
        self._has_settings = False
        self.is_usable = True
        self._connecting: asyncio.Task[None] | None = loop.create_task(self._connect(url))

    async def _connect(self, url: BaseUrl) -> None:
        try:
            await self._loop.create_connection(lambda: self, url.host, url.port)
        except OSError as error:
            self.end(f"cannot connect: {error.strerror or error}")
        finally:
            self._connecting = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._h2.initiate_connection()
        if not self.is_usable:
            self._transport.abort()
            return
        self._flush()

    def submit(self, request: Request) -> None:
        """Sends a request as soon as can be."""
        request.connection = self
        self._waiting.append(request)
        self._begin_waiting()

    def _begin_waiting(self) -> None:
        if not self._has_settings:
            return
        limit = self._h2.remote_settings.max_concurrent_streams
        while self._waiting and len(self._streams) < limit:
            self._begin(self._waiting.popleft())
        self._schedule_flush()

    def _begin(self, request: Request) -> None:
        stream_id = request.stream_id = self._h2.get_next_available_stream_id()
        if stream_id > _STREAM_ID_MAX:
            self.is_usable = False
        self._streams[stream_id] = request
        self._h2.send_headers(stream_id, self._headers)
        if not self._send_body(request):
            self._blocked.append(request)

    def _send_body(self, request: Request) -> bool:
        """Hands h2 as much of the body as the windows allow; whether that was all."""
        body, stream_id = request.body, request.stream_id
        if body is None:
            return True
        while True:
            window = self._h2.local_flow_control_window(stream_id)
            size = min(len(body), window, self._h2.max_outbound_frame_size)
            is_last = size == len(body)
            if size <= 0 and not is_last:
                request.body = body
                return False
            self._h2.send_data(stream_id, body[:size], end_stream=is_last)
            if is_last:
                request.body = None
                return True
            body = body[size:]

    def _send_blocked(self) -> None:
        for _ in range(len(self._blocked)):
            request = self._blocked.popleft()
            if request.stream_id in self._streams and not self._send_body(request):
                self._blocked.append(request)

    def _schedule_flush(self) -> None:
        # Sessions whose ticks fall into one turn of the loop share a write.
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._transport is not None:
            data = self._h2.data_to_send()
            if data:
                self._transport.write(data)

    def abandon(self, request: Request) -> None:
        """Gives a request up: its stream is reset, or never begun."""
        if self._streams.pop(request.stream_id, None) is not None:
            try:
                self._h2.reset_stream(request.stream_id, h2.errors.ErrorCodes.CANCEL)
            except h2.exceptions.ProtocolError:
                return
            self._begin_waiting()
        elif request in self._waiting:
            self._waiting.remove(request)

    def data_received(self, data: bytes) -> None:
        try:
            events = self._h2.receive_data(data)
            for event in events:
                self._on_event(event)
            self._begin_waiting()
            # Also what h2 has to say for itself: acknowledgements, windows, pongs.
            self._schedule_flush()
        except h2.exceptions.ProtocolError as error:
            self._flush()
            self.end(f"HTTP/2: {error}")

    def _on_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            request = self._streams.get(event.stream_id)
            if request is not None:
                request.status = next((int(value) for name, value in event.headers if name == b":status"), 0)
        elif isinstance(event, h2.events.DataReceived):
            self._on_data(event)
        elif isinstance(event, h2.events.StreamEnded):
            request = self._streams.pop(event.stream_id, None)
            if request is not None:
                if request.body is not None:
                    # Answered before it was wholly sent: what is left need not be.
                    self._h2.reset_stream(event.stream_id, h2.errors.ErrorCodes.CANCEL)
                request.finish(_outcome(request))
        elif isinstance(event, h2.events.StreamReset):
            request = self._streams.pop(event.stream_id, None)
            if request is not None:
                request.finish(_reset("the stream was reset"))
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            self._has_settings = True
            self._send_blocked()
        elif isinstance(event, h2.events.WindowUpdated):
            self._send_blocked()
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.end("the server is going away")

    def _on_data(self, event: h2.events.DataReceived) -> None:
        self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        request = self._streams.get(event.stream_id)
        if request is not None:
            request.answer += event.data
            if len(request.answer) > _ANSWER_BYTES_MAX:
                self.abandon(request)
                request.finish(Failure(FailureKind.PARSE_ERROR, "inference answer: too long", request.status))

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc) if exc is not None else "ended by the server")
        self._transport = None

    def end(self, cause: str) -> None:
        """The connection is of no more use: all its requests fail."""
        self.is_usable = False
        failed = [*self._streams.values(), *self._waiting]
        self._streams.clear()
        self._waiting.clear()
        self._blocked.clear()
        if self._transport is not None:
            self._transport.close()
        elif self._connecting is not None and self._connecting is not asyncio.current_task():
            self._connecting.cancel()
        for request in failed:
            request.finish(_reset(cause))


def _outcome(request: Request) -> Outcome:
    if request.status != 200:
        return Failure.of_status(request.status)
    try:
        return parse_inference(request.answer)
    except ValueError as error:
        return not_strict(error)
