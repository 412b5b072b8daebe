"""The environment variables of the contract. A bad value is one line that names the variable, and exit code 2."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway_common.variables import COUNT_MAX, BaseUrl, ServerConfig, Variables

from .session.audio import OverflowPolicy

# A violation must be answered within 500 ms, so no socket may rest longer than half of that.
READ_PACE_MS_MAX = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerConfig):
    """The configuration of a gateway; times in seconds."""

    inference_url: BaseUrl
    inference_connections: int
    inference_timeout_s: float
    flush_interval_s: float
    flush_phase_jitter_s: float
    cpu_passes: int
    sessions_max: int
    buffer_frames_max: int
    overflow_policy: OverflowPolicy
    jobs_max: int
    outbox_messages_max: int
    start_timeout_s: float
    read_pace_s: float

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Reads all variables; raises `ConfigError` for the first that is bad."""
        read = Variables(environment)
        workers = read.workers()
        inference = read.url("INFERENCE_URL", "http://127.0.0.1:9000")
        policies = tuple(policy.value for policy in OverflowPolicy)
        return cls(
            port=read.number("PORT", 3000, 1, 65_535),
            workers=workers,
            inference_url=replace(inference, path=f"{inference.path}/infer"),
            # Of each worker.
            inference_connections=read.number("INFERENCE_HTTP_CLIENTS", 1, 1, 4096),
            inference_timeout_s=read.seconds("INFERENCE_TIMEOUT_MS", 5000, 1),
            flush_interval_s=read.seconds("FLUSH_INTERVAL_MS", 1000, 1),
            flush_phase_jitter_s=read.seconds("FLUSH_PHASE_JITTER_MS", 1000, 0),
            cpu_passes=read.number("CPU_PASSES", 4, 1, 2**32 - 1),
            sessions_max=read.number("MAX_SESSIONS", 0, 0, COUNT_MAX),
            buffer_frames_max=read.number("MAX_BUFFER_FRAMES", 500, 1, 1_000_000),
            overflow_policy=OverflowPolicy(read.choice("OVERFLOW_POLICY", "drop_oldest", policies)),
            jobs_max=read.number("MAX_INFLIGHT_JOBS", 0, 0, COUNT_MAX),
            outbox_messages_max=read.number("OUTBOX_MESSAGES", 4, 1, 1_000_000),
            start_timeout_s=read.seconds("START_TIMEOUT_MS", 10_000, 1),
            drain_timeout_s=read.seconds("DRAIN_TIMEOUT_MS", 5000, 0),
            read_pace_s=read.seconds("READ_PACE_MS", 0, 0, READ_PACE_MS_MAX),
            auth_token=read.text("AUTH_TOKEN"),
            event_loop=read.event_loop(),
            worker_kind=read.choice("WORKER_KIND", "processes", ("processes", "threads")),
        )
