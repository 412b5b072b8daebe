"""What several tests need: the shared vectors, synthetic audio, the reference computation."""

import json
import math
from pathlib import Path
from typing import Any

from stt_gateway.messages import InferenceAnswer

VECTORS = Path(__file__).resolve().parents[2] / "vectors"

WORDS = (
    *("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "hello", "world", "yes", "no"),
    *("okay", "right", "left", "stop", "go", "wait", "ready", "done", "again", "now", "later", "never"),
)


def vectors(name: str) -> list[Any]:
    """The cases of a vector file, without those that pydantic's parser cannot see: repeated fields."""
    cases: list[Any] = json.loads((VECTORS / f"{name}.json").read_text())["cases"]
    assert cases
    return [case for case in cases if not case["id"].startswith("duplicate-")]


def by_id(case: Any) -> str:
    return str(case["id"])


def synthetic_frame(session: int, seq: int) -> bytes:
    samples = (((seq * 320 + session + i) * 17) % 20_000 - 10_000 for i in range(320))
    return b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples)


def reference(pcm: bytes, passes: int) -> InferenceAnswer:
    """Section 5 of the contract."""
    samples = [int.from_bytes(pcm[i : i + 2], "little", signed=True) for i in range(0, len(pcm), 2)]
    checksum, zero_crossings, previous = 2_166_136_261, 0, None
    for number in range(passes):
        for sample in samples:
            checksum = ((checksum ^ ((sample + 32_768 + number) & 0xFFFF)) * 16_777_619) & 0xFFFF_FFFF
            zero_crossings += previous is not None and (previous < 0) != (sample < 0)
            previous = sample
    return InferenceAnswer(
        rms=math.sqrt(sum(sample * sample for sample in samples) / len(samples)) if samples else 0.0,
        zero_crossings=zero_crossings,
        checksum=checksum,
        samples=len(samples) * passes,
        transcript=WORDS[checksum % 24],
        audio_bytes=len(pcm),
    )
