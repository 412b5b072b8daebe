"""WebSocket framing without I/O, server side (RFC 6455).

`websockets` has the C function that unmasks; its own parser makes a dataclass of each frame and refuses some of them only
after their payload, so frames are parsed here.
"""

import struct
from typing import ClassVar, Final

from websockets.exceptions import ProtocolError
from websockets.frames import Close
from websockets.utils import accept_key

try:
    from websockets.speedups import apply_mask
except ImportError:  # pragma: no cover  # a platform for which there is no compiled one
    from websockets.utils import apply_mask

__all__ = ["Reader", "Violation", "accept_key", "apply_mask", "binary_frame", "close_frame", "pong_frame", "text_frame"]

_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_OPCODES: Final = frozenset((_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG))
_CONTROL_BYTES_MAX: Final = 125


class Violation(Exception):  # noqa: N818  # the contracts' word
    """The client broke a rule; the session ends with this close code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Reader:
    """Bytes go in; messages, pings and the close come out, by calls of methods that a subclass has."""

    __slots__ = ("_fragments", "_opcode", "_rest", "_wanted")

    # A message that is declared longer is refused from its header.
    TEXT_BYTES_MAX: ClassVar[int] = 64 * 1024
    BINARY_BYTES_MAX: ClassVar[int] = 64 * 1024

    def __init__(self) -> None:
        # The beginning of a frame whose end has not come, and how long it must be before another look is worth while.
        self._rest = bytearray()
        self._wanted = 0
        # Of a fragmented message: its opcode, and its payload so far.
        self._opcode: int | None = None
        self._fragments: bytearray | None = None

    def on_binary(self, payload: bytes, now: float) -> None:
        """A binary message."""

    def on_text(self, text: str, now: float) -> None:
        """A text message."""

    def on_ping(self, payload: bytes) -> None:
        """A ping, to be answered."""

    def on_close(self, code: int | None) -> None:
        """The client's close; bytes behind it are still given to the other methods, so ignore them there."""

    def fast(self, data: bytes, position: int, now: float) -> int:
        """Takes whole frames of the most frequent kind, if a subclass has a short way with them; where they end."""
        return position

    def feed(self, data: bytes, now: float) -> None:
        """Takes what was read at `now`; raises `Violation`."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return
            data = bytes(self._rest)
            self._rest.clear()
            self._wanted = 0
        position, end = 0, len(data)
        while position < end:
            if self._opcode is None:
                position = self.fast(data, position, now)
                if position == end:
                    return
            taken = self._frame(data, position, now)
            if taken is None:
                self._rest += data[position:] if position else data
                return
            position = taken

    def _frame(self, data: bytes, position: int, now: float) -> int | None:
        """Any frame: where it ends, or `None` if its end has not come."""
        available = len(data) - position
        if available < 2:
            if available and data[position] & 0x70:
                raise Violation(1002, "a reserved bit")
            return None
        head, length = data[position], data[position + 1] & 0x7F
        _check_head(head, data[position + 1])
        opcode = head & 0x0F
        start = position + 2
        if length >= 126:
            size = 2 if length == 126 else 8
            if available < 2 + size:
                return None
            length = int.from_bytes(data[start : start + size])
            start += size
        self._check_length(opcode, length)
        self._check_order(opcode)
        payload_start = start + 4
        if len(data) < payload_start + length:
            self._wanted = payload_start + length - position
            return None
        payload = apply_mask(data[payload_start : payload_start + length], data[start:payload_start])
        if opcode >= _CLOSE:
            self._control(opcode, payload)
        else:
            self._fragment(opcode, bool(head & 0x80), payload, now)
        return payload_start + length

    def _check_length(self, opcode: int, length: int) -> None:
        if opcode >= _CLOSE:
            return
        held = len(self._fragments) if self._fragments is not None else 0
        kind = opcode if opcode != _CONTINUATION else self._opcode
        if held + length > (self.TEXT_BYTES_MAX if kind == _TEXT else self.BINARY_BYTES_MAX):
            raise Violation(1009, "a message over the limit")

    def _check_order(self, opcode: int) -> None:
        if opcode >= _CLOSE:
            return
        if opcode == _CONTINUATION and self._opcode is None:
            raise Violation(1002, "a continuation of nothing")
        if opcode != _CONTINUATION and self._opcode is not None:
            raise Violation(1002, "a message inside a fragmented one")

    def _fragment(self, opcode: int, is_final: bool, payload: bytes, now: float) -> None:
        if opcode != _CONTINUATION:
            if is_final:
                self._message(opcode, payload, now)
                return
            self._opcode, self._fragments = opcode, bytearray(payload)
            return
        assert self._opcode is not None
        assert self._fragments is not None
        self._fragments += payload
        if is_final:
            opcode, message = self._opcode, bytes(self._fragments)
            self._opcode, self._fragments = None, None
            self._message(opcode, message, now)

    def _message(self, opcode: int, payload: bytes, now: float) -> None:
        if opcode == _BINARY:
            self.on_binary(payload, now)
            return
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            raise Violation(1007, "a text that is not UTF-8") from None
        self.on_text(text, now)

    def _control(self, opcode: int, payload: bytes) -> None:
        if opcode == _PING:
            self.on_ping(payload)
        elif opcode == _CLOSE:
            try:
                close = Close.parse(payload)
            except (ProtocolError, UnicodeDecodeError):
                raise Violation(1002, "a close that may not be sent") from None
            self.on_close(int(close.code) if payload else None)


def _check_head(head: int, second: int) -> None:
    """What the first two bytes alone give away."""
    if head & 0x70:
        raise Violation(1002, "a reserved bit")
    if head & 0x0F not in _OPCODES:
        raise Violation(1002, "a reserved opcode")
    if not second & 0x80:
        raise Violation(1002, "an unmasked frame")
    if head & 0x08 and (not head & 0x80 or second & 0x7F > _CONTROL_BYTES_MAX):
        raise Violation(1002, "a control frame in fragments, or too long")


def text_frame(text: str) -> bytes:
    """A text message of a server: one frame, not masked."""
    return _frame(_TEXT, text.encode())


def binary_frame(payload: bytes) -> bytes:
    """A binary message of a server: one frame, not masked."""
    return _frame(_BINARY, payload)


def pong_frame(payload: bytes) -> bytes:
    """The answer to a ping."""
    return _frame(_PONG, payload)


def close_frame(code: int | None) -> bytes:
    """A close, with its code if it has one."""
    return _frame(_CLOSE, b"" if code is None else struct.pack("!H", code))


def _frame(opcode: int, payload: bytes) -> bytes:
    length = len(payload)
    if length < 126:
        return struct.pack("!BB", 0x80 | opcode, length) + payload
    if length < 65_536:
        return struct.pack("!BBH", 0x80 | opcode, 126, length) + payload
    return struct.pack("!BBQ", 0x80 | opcode, 127, length) + payload
