"""The vectors that all gateways share."""

import hashlib
import json
import struct
from typing import Any

import pytest

from gateway_common.websocket import Violation
from stt_gateway.session.audio import Span
from stt_gateway.session.messages import (
    ErrorContext,
    Failure,
    FailureKind,
    Inference,
    error,
    is_start,
    parse_inference,
    partial,
)
from stt_gateway.websocket import AudioReader
from support import reference, synthetic_frame, vectors


def by_id(case: Any) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", vectors("start"), ids=by_id)
def test_start(case: Any) -> None:
    assert is_start(case["text"]) is case["ok"]


def test_a_start_nested_too_deep_is_no_start() -> None:
    assert not is_start("[" * 60_000)


class _Strict(AudioReader):
    """Takes audio, and refuses all else as a started session does."""

    def __init__(self) -> None:
        self.frames = 0
        super().__init__()
        self.on_audio = self._count

    def _count(self, payload: bytes, now: float) -> None:
        self.frames += 1

    def on_odd_size(self) -> None:
        raise Violation(1003, "size")

    def on_text(self, text: str, now: float) -> None:
        raise Violation(1002, "text")


@pytest.mark.parametrize("case", vectors("frames"), ids=by_id)
def test_frames(case: Any) -> None:
    opcode, length = (1 if case["opcode"] == "text" else 2), case["length"]
    if length < 126:
        header = struct.pack("!BB", 0x80 | opcode, 0x80 | length)
    elif length < 65_536:
        header = struct.pack("!BBH", 0x80 | opcode, 0xFE, length)
    else:
        header = struct.pack("!BBQ", 0x80 | opcode, 0xFF, length)
    # Over the limit the header alone must be enough, without even its mask.
    frame = header if length > 65_536 else header + b"\0\0\0\0" + b" " * length
    reader = _Strict()
    if case["ok"]:
        reader.feed(frame, 0.0)
        assert reader.frames == 1
        return
    with pytest.raises(Violation) as violation:
        reader.feed(frame, 0.0)
    assert violation.value.code == case["close"]


@pytest.mark.parametrize("case", vectors("synthetic"), ids=by_id)
def test_synthetic(case: Any) -> None:
    pcm = synthetic_frame(case["session"], case["seq"])
    assert hashlib.sha256(pcm).hexdigest() == case["pcm_sha256"]


@pytest.mark.parametrize("case", vectors("reference"), ids=by_id)
def test_reference(case: Any) -> None:
    if "pcm" in case:
        pcm = bytes.fromhex(case["pcm"])
    else:
        source = case["pcm_from"]
        first, count = source["first_seq"], source["frames"]
        pcm = b"".join(synthetic_frame(source["session"], seq) for seq in range(first, first + count))
    computed = reference(pcm, case["passes"])._asdict()
    assert computed.pop("rms") == pytest.approx(case["expect"].pop("rms"), rel=1e-9)
    assert computed == case["expect"]


@pytest.mark.parametrize("case", vectors("inference_answers"), ids=by_id)
def test_inference_answers(case: Any) -> None:
    body = case["body"].encode()
    if case["ok"]:
        assert parse_inference(body)._asdict() == json.loads(body)
    else:
        with pytest.raises(ValueError):  # noqa: PT011  # any cause will do
            parse_inference(body)


@pytest.mark.parametrize(
    "rms", ["1e999", "-1e999", "1" * 400, "Infinity"], ids=["too large", "too small", "too long", "no JSON"]
)
def test_a_number_that_is_none_is_refused(rms: str) -> None:
    body = f'{{"rms":{rms},"zero_crossings":7,"checksum":1,"samples":1280,"transcript":"now","audio_bytes":640}}'
    with pytest.raises(ValueError):  # noqa: PT011  # any cause will do
        parse_inference(body.encode())


def test_a_transcript_that_cannot_be_sent_on_is_refused() -> None:
    body = rb'{"rms":1,"zero_crossings":7,"checksum":1,"samples":1280,"transcript":"\ud800","audio_bytes":640}'
    with pytest.raises(ValueError, match="surrogates"):
        parse_inference(body)


@pytest.mark.parametrize("case", vectors("inference_failures"), ids=by_id)
def test_inference_failures(case: Any) -> None:
    if case["status"] is not None:
        kind = Failure.of_status(case["status"]).kind
    else:
        kind = {"reset": FailureKind.CONNECTION_RESET, "timeout": FailureKind.TIMEOUT}[case["transport"]]
    assert (kind.kind, kind.stage, kind.retryable) == (case["kind"], case["stage"], case["retryable"])


@pytest.mark.parametrize("case", vectors("partials"), ids=by_id)
def test_partials(case: Any) -> None:
    batch, config = case["batch"], case["config"]
    span = Span(batch["oldest_frame_seq"], batch["newest_frame_seq"], 0.0, 0.0)
    assert span.frames == batch["frames"]
    text = partial(span, Inference(**case["inference"]), config["cpu_passes"], batch["flush_lateness_ms"])
    assert json.loads(text) == case["expect"]


@pytest.mark.parametrize("case", vectors("errors"), ids=by_id)
def test_errors(case: Any) -> None:
    given = case["input"]
    batch = given["batch"]
    now = 1000.0
    span = Span(
        batch["oldest_frame_seq"],
        batch["newest_frame_seq"],
        now - batch["oldest_age_ms"] / 1000,
        now - batch["newest_age_ms"] / 1000,
    )
    kind = next(kind for kind in FailureKind if (kind.kind, kind.stage) == (given["kind"], given["stage"]))
    context = ErrorContext(
        now,
        batch["flush_lateness_ms"],
        given["inference_elapsed_ms"],
        given["inflight_gateway_batches"],
        given["gateway_buffer_frames"],
    )
    message = json.loads(error(span, Failure(kind, given["message"], given["inference_status"]), context))
    expected = case["expect"]
    assert message.keys() == expected.keys()
    for age in ("oldest_age_ms", "newest_age_ms"):
        assert message.pop(age) == pytest.approx(expected.pop(age), abs=1e-6)
    assert message == expected
