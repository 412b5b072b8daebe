"""The JSON of the contract: strict both ways."""

import json
import math
from enum import Enum
from typing import Any, NamedTuple

from .audio import Span

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1

# Most characters of a message that quotes from elsewhere.
_QUOTE_CHARS_MAX = 200


class NotStrictError(ValueError):
    """JSON that is not exactly what the contract says."""


class Inference(NamedTuple):
    """The inference server's answer, in the order of the contract."""

    rms: float
    zero_crossings: int
    checksum: int
    samples: int
    transcript: str
    audio_bytes: int


class FailureKind(Enum):
    """The rows of the contract's error table: kind, stage, retryable."""

    TIMEOUT = ("timeout", "inference_request", True)
    CONNECTION_RESET = ("connection_reset", "inference_request", True)
    HTTP_429 = ("http_429", "inference_request", True)
    HTTP_5XX = ("http_5xx", "inference_request", True)
    HTTP_4XX = ("http_4xx", "inference_request", False)
    PARSE_ERROR = ("parse_error", "inference_response_parse", False)
    OVERFLOW = ("overflow", "input_buffer", False)

    def __init__(self, kind: str, stage: str, retryable: bool) -> None:
        self.kind = kind
        self.stage = stage
        self.retryable = retryable


class Failure(NamedTuple):
    """Why frames have no transcript."""

    kind: FailureKind
    message: str
    status: int | None = None

    @classmethod
    def of_status(cls, status: int) -> "Failure":
        """An answer with any status but 200."""
        if status == 429:
            kind = FailureKind.HTTP_429
        elif 400 <= status < 500:
            kind = FailureKind.HTTP_4XX
        elif 500 <= status < 600:
            kind = FailureKind.HTTP_5XX
        else:
            # Neither the promised answer nor an HTTP error: what came is not what the contract lets us parse.
            kind = FailureKind.PARSE_ERROR
        return cls(kind, f"inference answered with status {status}", status)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NotStrictError("a field twice")
    return fields


def _no_constant(name: str) -> Any:
    raise NotStrictError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise NotStrictError("nested too deep") from None


def is_start(text: str) -> bool:
    """Whether a client's first message is the start message."""
    try:
        message = _decode(text)
    except ValueError:
        return False
    return isinstance(message, dict) and message == {"type": "start"}


def parse_inference(body: bytes) -> Inference:
    """The body of a 200 answer; raises `ValueError` where it is not the strict object."""
    answer = _decode(body.decode())
    if not isinstance(answer, dict) or len(answer) != len(Inference._fields):
        raise NotStrictError("not the six fields")
    try:
        inference = Inference(**answer)
    except TypeError:
        raise NotStrictError("not the six fields") from None
    rms, zero_crossings, checksum, samples, transcript, audio_bytes = inference
    # `type`, not `isinstance`: a bool is an int to Python.
    if type(rms) is int and abs(rms) <= U64_MAX:
        inference = inference._replace(rms=float(rms))
    elif type(rms) is not float or not math.isfinite(rms):
        raise NotStrictError("rms is not a number")
    if type(transcript) is not str:
        raise NotStrictError("transcript is not a string")
    # Half a surrogate pair is legal in JSON's grammar, but is no text that could be sent on. The error is a ValueError.
    transcript.encode()
    for number, most in (
        (zero_crossings, U64_MAX),
        (checksum, U32_MAX),
        (samples, U64_MAX),
        (audio_bytes, U64_MAX),
    ):
        if type(number) is not int or not 0 <= number <= most:
            raise NotStrictError("a count is not a whole number in its range")
    return inference


def not_strict(cause: ValueError) -> Failure:
    """The failure for a 200 answer that could not be parsed."""
    return Failure(FailureKind.PARSE_ERROR, f"inference answer: {cause}"[:_QUOTE_CHARS_MAX], 200)


# json.dumps() makes an encoder for each call with options.
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def partial(span: Span, inference: Inference, cpu_passes: int, flush_lateness_ms: float) -> str:
    """The `partial` for an answered batch."""
    return _encode(
        {
            "type": "partial",
            "oldest_frame_seq": span.oldest_seq,
            "newest_frame_seq": span.newest_seq,
            "frames": span.frames,
            "rms": inference.rms,
            "zero_crossings": inference.zero_crossings,
            "checksum": inference.checksum,
            "samples": inference.samples,
            "transcript": inference.transcript,
            "audio_bytes": inference.audio_bytes,
            "cpu_passes": cpu_passes,
            "flush_lateness_ms": flush_lateness_ms,
        }
    )


class ErrorContext(NamedTuple):
    """What an `error` says about its moment."""

    now: float
    flush_lateness_ms: float
    inference_elapsed_ms: float | None
    inflight_gateway_batches: int
    gateway_buffer_frames: int


def error(span: Span, failure: Failure, context: ErrorContext) -> str:
    """The `error` that names frames without a transcript."""
    kind = failure.kind
    return _encode(
        {
            "type": "error",
            "stage": kind.stage,
            "kind": kind.kind,
            "message": failure.message,
            "oldest_frame_seq": span.oldest_seq,
            "newest_frame_seq": span.newest_seq,
            "frames": span.frames,
            "audio_bytes": span.audio_bytes,
            "oldest_age_ms": (context.now - span.oldest_at) * 1000,
            "newest_age_ms": (context.now - span.newest_at) * 1000,
            "flush_lateness_ms": context.flush_lateness_ms,
            "inference_elapsed_ms": context.inference_elapsed_ms,
            "inflight_gateway_batches": context.inflight_gateway_batches,
            "gateway_buffer_frames": context.gateway_buffer_frames,
            "inference_status": failure.status,
            "retryable": kind.retryable,
        }
    )
