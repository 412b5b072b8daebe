"""The framing, against another implementation of it."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Close, Frame, Opcode

from gateway_common.websocket import Violation, close_frame, pong_frame, text_frame
from stt_gateway.websocket import AudioReader


class Recorder(AudioReader):
    """Remembers what came out."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []
        super().__init__()
        self.on_audio = lambda payload, _: self.events.append(("audio", payload))

    def on_odd_size(self) -> None:
        self.events.append(("odd", None))

    def on_text(self, text: str, now: float) -> None:
        self.events.append(("text", text))

    def on_ping(self, payload: bytes) -> None:
        self.events.append(("ping", payload))

    def on_close(self, code: int | None) -> None:
        self.events.append(("close", code))


def client_frame(opcode: Opcode, payload: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


def fragmented(opcode: Opcode, payload: bytes, cuts: list[int], pings: list[bytes]) -> bytes:
    """A message cut at places, with pings between the pieces."""
    edges = [0, *sorted(cut % (len(payload) + 1) for cut in cuts), len(payload)]
    data = b""
    for number, (start, end) in enumerate(pairwise(edges)):
        is_last = number == len(edges) - 2
        data += client_frame(opcode if number == 0 else Opcode.CONT, payload[start:end], fin=is_last)
        if number < len(pings) and not is_last:
            data += client_frame(Opcode.PING, pings[number])
    return data


MESSAGE = st.one_of(
    st.tuples(st.just("audio"), st.binary(min_size=640, max_size=640)),
    st.tuples(st.just("odd"), st.binary(max_size=700).filter(lambda payload: len(payload) != 640)),
    st.tuples(st.just("text"), st.text(max_size=200)),
    st.tuples(st.just("ping"), st.binary(max_size=125)),
    st.tuples(st.just("pong"), st.binary(max_size=125)),
)


@given(
    messages=st.lists(st.tuples(MESSAGE, st.lists(st.integers(0, 700), max_size=3)), max_size=6),
    chunks=st.lists(st.integers(1, 900), min_size=1, max_size=8),
)
def test_whatever_the_pieces_the_messages_come_out(
    messages: list[tuple[tuple[str, bytes | str], list[int]]], chunks: list[int]
) -> None:
    data, expected = b"", list[tuple[str, object]]()
    for (kind, payload), cuts in messages:
        if isinstance(payload, str):
            data += fragmented(Opcode.TEXT, payload.encode(), cuts, [])
            expected.append((kind, payload))
        elif kind in ("ping", "pong"):
            data += client_frame(Opcode.PING if kind == "ping" else Opcode.PONG, payload)
            if kind == "ping":
                expected.append((kind, payload))
        else:
            pings = [b"p%d" % number for number in range(len(cuts))]
            data += fragmented(Opcode.BINARY, payload, cuts, pings)
            expected += (("ping", ping) for ping in pings)
            expected.append((kind, payload if kind == "audio" else None))
    reader, position, turn = Recorder(), 0, 0
    while position < len(data):
        size = chunks[turn % len(chunks)]
        reader.feed(data[position : position + size], 0.0)
        position, turn = position + size, turn + 1
    assert reader.events == expected


def refused(data: bytes) -> int:
    with pytest.raises(Violation) as violation:
        Recorder().feed(data, 0.0)
    return violation.value.code


@pytest.mark.parametrize("bit", [0x40, 0x20, 0x10])
def test_reserved_bits(bit: int) -> None:
    assert refused(bytes([0x82 | bit, 0x80])) == 1002
    assert refused(bytes([0x82 | bit])) == 1002


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
def test_reserved_opcodes(opcode: int) -> None:
    assert refused(bytes([0x80 | opcode, 0x80])) == 1002


def test_an_unmasked_frame_is_refused_by_its_second_byte() -> None:
    assert refused(b"\x82\x7e") == 1002


def test_control_frames_are_short_and_whole() -> None:
    assert refused(b"\x89\xfe") == 1002
    assert refused(b"\x09\x80") == 1002


def test_fragments_have_an_order() -> None:
    assert refused(client_frame(Opcode.CONT, b"")) == 1002
    assert refused(client_frame(Opcode.BINARY, b"", fin=False) + client_frame(Opcode.BINARY, bytes(640))) == 1002


def test_fragments_are_not_buffered_without_end() -> None:
    piece = bytes(16 * 1024)
    data = client_frame(Opcode.BINARY, piece, fin=False)
    reader = Recorder()
    reader.feed(data, 0.0)
    for _ in range(3):
        reader.feed(client_frame(Opcode.CONT, piece, fin=False), 0.0)
    with pytest.raises(Violation) as violation:
        # The header alone, of one byte more.
        reader.feed(b"\x00\x81", 0.0)
    assert violation.value.code == 1009


def test_a_text_is_utf8() -> None:
    assert refused(client_frame(Opcode.TEXT, b"\xc3\x28")) == 1007


@pytest.mark.parametrize("payload", [b"\x03", struct.pack("!H", 1005), struct.pack("!H", 999), b"\x03\xe8\xc3\x28"])
def test_a_close_that_may_not_be_sent(payload: bytes) -> None:
    masked = bytes([0x88, 0x80 | len(payload)]) + bytes(4) + payload
    assert refused(masked) == 1002


@pytest.mark.parametrize(("payload", "code"), [(b"", None), (Close(1000, "bye").serialize(), 1000)])
def test_closes(payload: bytes, code: int | None) -> None:
    reader = Recorder()
    reader.feed(client_frame(Opcode.CLOSE, payload), 0.0)
    assert reader.events == [("close", code)]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_texts_are_framed_as_another_would(size: int) -> None:
    assert text_frame("x" * size) == Frame(Opcode.TEXT, b"x" * size).serialize(mask=False)


def test_controls_are_framed_as_another_would() -> None:
    assert close_frame(1001) == Frame(Opcode.CLOSE, Close(1001, "").serialize()).serialize(mask=False)
    assert close_frame(None) == Frame(Opcode.CLOSE, b"").serialize(mask=False)
    assert pong_frame(b"x") == Frame(Opcode.PONG, b"x").serialize(mask=False)
