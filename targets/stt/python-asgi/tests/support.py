"""What several tests need: the shared vectors, synthetic audio, the reference computation, a world for a session."""

import json
import math
from pathlib import Path
from typing import Any

from stt_gateway.session import Deferral, Rules
from stt_gateway.session.audio import OverflowPolicy
from stt_gateway.session.messages import FailureKind, Inference

VECTORS = Path(__file__).resolve().parents[2] / "vectors"

WORDS = (
    *("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "hello", "world", "yes", "no"),
    *("okay", "right", "left", "stop", "go", "wait", "ready", "done", "again", "now", "later", "never"),
)


def vectors(name: str) -> list[Any]:
    """The cases of a vector file, as pytest parameters would like them."""
    cases: list[Any] = json.loads((VECTORS / f"{name}.json").read_text())["cases"]
    assert cases
    return cases


def synthetic_frame(session: int, seq: int) -> bytes:
    samples = (((seq * 320 + session + i) * 17) % 20_000 - 10_000 for i in range(320))
    return b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples)


def reference(pcm: bytes, passes: int) -> Inference:
    """Section 5 of the contract."""
    samples = [int.from_bytes(pcm[i : i + 2], "little", signed=True) for i in range(0, len(pcm), 2)]
    checksum, zero_crossings, previous = 2_166_136_261, 0, None
    for number in range(passes):
        for sample in samples:
            checksum = ((checksum ^ ((sample + 32_768 + number) & 0xFFFF)) * 16_777_619) & 0xFFFF_FFFF
            zero_crossings += previous is not None and (previous < 0) != (sample < 0)
            previous = sample
    rms = math.sqrt(sum(sample * sample for sample in samples) / len(samples)) if samples else 0.0
    return Inference(rms, zero_crossings, checksum, len(samples) * passes, WORDS[checksum % 24], len(pcm))


def rules(
    *, frames_max: int = 500, policy: OverflowPolicy = OverflowPolicy.DROP_OLDEST, outbox: int = 4, interval_s: float = 1.0
) -> Rules:
    return Rules(interval_s, frames_max, policy, outbox, cpu_passes=4)


class RecordingWorld:
    """The surroundings of a session, which remember what it did."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.deferrals: list[Deferral] = []
        self.failures: list[FailureKind] = []
        self.has_jobs = True

    def send(self, message: str) -> None:
        self.messages.append(json.loads(message))

    def reserve_job(self) -> bool:
        return self.has_jobs

    def jobs_inflight(self) -> int:
        return 3

    def deferred(self, reason: Deferral) -> None:
        self.deferrals.append(reason)

    def failed(self, kind: FailureKind) -> None:
        self.failures.append(kind)

    def named(self) -> list[tuple[str, int, int]]:
        """What has been named so far: kind, from, to."""
        return [
            (message.get("kind", message["type"]), message["oldest_frame_seq"], message["newest_frame_seq"])
            for message in self.messages
        ]
