"""The JSON of the contract."""

from enum import Enum
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

FRAME_BYTES = 640

U32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Field(ge=0, le=2**64 - 1)]


class _Strict(BaseModel):
    """Exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Start(_Strict):
    """A client's first message."""

    type: Literal["start"]


class InferenceAnswer(_Strict):
    """The body of inference's 200 answer."""

    rms: FiniteFloat
    zero_crossings: U64
    checksum: U32
    samples: U64
    transcript: str
    audio_bytes: U64


class Partial(InferenceAnswer):
    """The answer to a batch of frames."""

    type: Literal["partial"] = "partial"
    oldest_frame_seq: U64
    newest_frame_seq: U64
    frames: U64
    cpu_passes: U32
    flush_lateness_ms: float


class ErrorMessage(_Strict):
    """Frames that get no transcript."""

    type: Literal["error"] = "error"
    stage: str
    kind: str
    message: str
    oldest_frame_seq: U64
    newest_frame_seq: U64
    frames: U64
    audio_bytes: U64
    oldest_age_ms: float
    newest_age_ms: float
    flush_lateness_ms: float
    inference_elapsed_ms: float | None
    inflight_gateway_batches: U64
    gateway_buffer_frames: U64
    inference_status: int | None
    retryable: bool


class Span(NamedTuple):
    """Consecutive frames: their numbers, and when the first and the last of them came."""

    oldest_seq: int
    newest_seq: int
    oldest_at: float
    newest_at: float

    @property
    def frames(self) -> int:
        return self.newest_seq - self.oldest_seq + 1


class FailureKind(Enum):
    """The rows of the contract's table of errors: kind, stage, retryable."""

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

    @classmethod
    def of_status(cls, status: int) -> "FailureKind":
        """The kind of an answer with any status but 200."""
        if status == 429:
            return cls.HTTP_429
        if 400 <= status < 500:
            return cls.HTTP_4XX
        if 500 <= status < 600:
            return cls.HTTP_5XX
        # Neither the promised answer nor an HTTP error.
        return cls.PARSE_ERROR


class Failure(NamedTuple):
    """Why frames get no transcript."""

    kind: FailureKind
    message: str
    status: int | None = None
    elapsed_ms: float | None = None


class Circumstances(NamedTuple):
    """What an `error` says about its moment."""

    now: float
    flush_lateness_ms: float
    inflight_batches: int
    buffer_frames: int


def is_start(text: str) -> bool:
    """Whether a client's first message is the start message."""
    try:
        Start.model_validate_json(text)
    except ValidationError:
        return False
    return True


def partial(span: Span, answer: InferenceAnswer, cpu_passes: int, flush_lateness_ms: float) -> str:
    """The `partial` for an answered batch."""
    return Partial(
        oldest_frame_seq=span.oldest_seq,
        newest_frame_seq=span.newest_seq,
        frames=span.frames,
        cpu_passes=cpu_passes,
        flush_lateness_ms=flush_lateness_ms,
        **answer.model_dump(),
    ).model_dump_json()


def error(span: Span, failure: Failure, around: Circumstances) -> str:
    """The `error` that names frames without a transcript."""
    return ErrorMessage(
        stage=failure.kind.stage,
        kind=failure.kind.kind,
        message=failure.message,
        oldest_frame_seq=span.oldest_seq,
        newest_frame_seq=span.newest_seq,
        frames=span.frames,
        audio_bytes=span.frames * FRAME_BYTES,
        oldest_age_ms=(around.now - span.oldest_at) * 1000,
        newest_age_ms=(around.now - span.newest_at) * 1000,
        flush_lateness_ms=around.flush_lateness_ms,
        inference_elapsed_ms=failure.elapsed_ms,
        inflight_gateway_batches=around.inflight_batches,
        gateway_buffer_frames=around.buffer_frames,
        inference_status=failure.status,
        retryable=failure.kind.retryable,
    ).model_dump_json()
