"""The environment."""

import pytest
from pydantic import ValidationError

from stt_gateway.config import OverflowPolicy, Settings, one_line


def test_defaults_are_those_of_the_contract() -> None:
    settings = Settings()
    assert (settings.port, settings.inference_timeout_ms, settings.flush_interval_ms) == (3000, 5000, 1000)
    assert (settings.flush_phase_jitter_ms, settings.cpu_passes, settings.inference_http_clients) == (1000, 4, 1)
    assert (settings.max_sessions, settings.max_buffer_frames, settings.max_inflight_jobs) == (0, 500, 0)
    assert settings.overflow_policy is OverflowPolicy.DROP_OLDEST
    assert (settings.outbox_messages, settings.start_timeout_ms, settings.drain_timeout_ms) == (4, 10_000, 5000)
    assert settings.auth_token.get_secret_value() == ""
    assert str(settings.inference_url) == "http://127.0.0.1:9000/"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PORT", value) for value in ("0", "65536", "http", "")),
        *(("WORKER_THREADS", value) for value in ("0", "two")),
        *(("INFERENCE_URL", value) for value in ("127.0.0.1:9000", "https://host", "", "not a url", "http://", "http://h:p")),
        ("INFERENCE_HTTP_CLIENTS", "0"),
        ("INFERENCE_TIMEOUT_MS", "-1"),
        ("FLUSH_INTERVAL_MS", "0"),
        ("FLUSH_PHASE_JITTER_MS", "1.5"),
        ("CPU_PASSES", "4294967296"),
        ("MAX_SESSIONS", ""),
        ("MAX_BUFFER_FRAMES", "0"),
        ("OVERFLOW_POLICY", "Drop_Oldest"),
        ("MAX_INFLIGHT_JOBS", "all\nof them"),
        ("OUTBOX_MESSAGES", "0"),
        ("START_TIMEOUT_MS", "0"),
        ("DRAIN_TIMEOUT_MS", "9" * 5000),
    ],
)
def test_a_bad_value_is_named_in_one_line(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError) as error:
        Settings()
    line = one_line(error.value)
    assert line.startswith(f"{name}=")
    assert len(line.splitlines()) == 1
