"""The environment."""

import pytest

from gateway_common.variables import BaseUrl, ConfigError
from stt_gateway.config import Config
from stt_gateway.session.audio import OverflowPolicy


def test_defaults_are_those_of_the_contract() -> None:
    config = Config.from_env({})
    assert (config.port, config.inference_timeout_s, config.flush_interval_s) == (3000, 5.0, 1.0)
    assert (config.flush_phase_jitter_s, config.cpu_passes) == (1.0, 4)
    assert (config.sessions_max, config.buffer_frames_max, config.jobs_max) == (0, 500, 0)
    assert config.overflow_policy is OverflowPolicy.DROP_OLDEST
    assert (config.outbox_messages_max, config.start_timeout_s, config.drain_timeout_s) == (4, 10.0, 5.0)
    assert (config.auth_token, config.read_pace_s) == ("", 0.0)
    assert config.inference_url == BaseUrl("127.0.0.1", 9000, "/infer", "127.0.0.1:9000")


def test_each_worker_has_one_connection_unless_told_otherwise() -> None:
    assert Config.from_env({"WORKER_THREADS": "3"}).inference_connections == 1
    assert Config.from_env({"WORKER_THREADS": "3", "INFERENCE_HTTP_CLIENTS": "2"}).inference_connections == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PORT", value) for value in ("0", "65536", "+80", "http", "", " 80", "8_0", "٣")),
        *(("WORKER_THREADS", value) for value in ("0", "two")),
        *(("INFERENCE_URL", value) for value in ("127.0.0.1:9000", "https://host", "", "not a url", "http://", "http://h:p")),
        *(
            ("INFERENCE_URL", value)
            for value in ("http://h/\n", "http://h?x=1", "http://user@h", "http://h:99999", "http://[::1")
        ),
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
        ("READ_PACE_MS", "251"),
        ("EVENT_LOOP", "twisted"),
        ("WORKER_KIND", "fibres"),
    ],
)
def test_a_bad_value_is_named_in_one_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}=") as error:
        Config.from_env({name: value})
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://[::1]:81/base/", BaseUrl("::1", 81, "/base/infer", "[::1]:81")),
        ("http://inference", BaseUrl("inference", 80, "/infer", "inference")),
    ],
)
def test_urls(text: str, url: BaseUrl) -> None:
    assert Config.from_env({"INFERENCE_URL": text}).inference_url == url
