"""The vectors that all gateways share. Those of frames are tested over sockets, in test_process."""

import hashlib
import json
from typing import Any

import pytest
from pydantic import ValidationError

from stt_gateway.messages import Circumstances, Failure, FailureKind, InferenceAnswer, Span, error, is_start, partial
from support import by_id, reference, synthetic_frame, vectors


@pytest.mark.parametrize("case", vectors("start"), ids=by_id)
def test_start(case: Any) -> None:
    assert is_start(case["text"]) is case["ok"]


def test_a_start_nested_too_deep_is_no_start() -> None:
    assert not is_start("[" * 60_000)


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
    computed = reference(pcm, case["passes"]).model_dump()
    assert computed.pop("rms") == pytest.approx(case["expect"].pop("rms"), rel=1e-9)
    assert computed == case["expect"]


@pytest.mark.parametrize("case", vectors("inference_answers"), ids=by_id)
def test_inference_answers(case: Any) -> None:
    body = case["body"].encode()
    if case["ok"]:
        assert InferenceAnswer.model_validate_json(body).model_dump() == json.loads(body)
    else:
        with pytest.raises(ValidationError):
            InferenceAnswer.model_validate_json(body)


@pytest.mark.parametrize(
    "rms", ["1e999", "-1e999", "1" * 400, "Infinity"], ids=["too large", "too small", "too long", "no JSON"]
)
def test_a_number_that_is_none_is_refused(rms: str) -> None:
    body = f'{{"rms":{rms},"zero_crossings":7,"checksum":1,"samples":1280,"transcript":"now","audio_bytes":640}}'
    with pytest.raises(ValidationError):
        InferenceAnswer.model_validate_json(body)


def test_a_transcript_that_cannot_be_sent_on_is_refused() -> None:
    body = rb'{"rms":1,"zero_crossings":7,"checksum":1,"samples":1280,"transcript":"\ud800","audio_bytes":640}'
    with pytest.raises(ValidationError):
        InferenceAnswer.model_validate_json(body)


@pytest.mark.parametrize("case", vectors("inference_failures"), ids=by_id)
def test_inference_failures(case: Any) -> None:
    if case["status"] is not None:
        kind = FailureKind.of_status(case["status"])
    else:
        kind = {"reset": FailureKind.CONNECTION_RESET, "timeout": FailureKind.TIMEOUT}[case["transport"]]
    assert (kind.kind, kind.stage, kind.retryable) == (case["kind"], case["stage"], case["retryable"])


@pytest.mark.parametrize("case", vectors("partials"), ids=by_id)
def test_partials(case: Any) -> None:
    batch = case["batch"]
    span = Span(batch["oldest_frame_seq"], batch["newest_frame_seq"], 0.0, 0.0)
    assert span.frames == batch["frames"]
    answer = InferenceAnswer(**case["inference"])
    text = partial(span, answer, case["config"]["cpu_passes"], batch["flush_lateness_ms"])
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
    failure = Failure(kind, given["message"], given["inference_status"], given["inference_elapsed_ms"])
    around = Circumstances(now, batch["flush_lateness_ms"], given["inflight_gateway_batches"], given["gateway_buffer_frames"])
    message = json.loads(error(span, failure, around))
    expected = case["expect"]
    assert message.keys() == expected.keys()
    for age in ("oldest_age_ms", "newest_age_ms"):
        assert message.pop(age) == pytest.approx(expected.pop(age), abs=1e-6)
    assert message == expected
