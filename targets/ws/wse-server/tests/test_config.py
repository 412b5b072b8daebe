"""The environment."""

import pytest

from wse_target.config import Config, ConfigError


def test_defaults_are_those_of_the_contract() -> None:
    assert Config.from_env({}) == Config(
        port=3000,
        metrics_port=3001,
        worker_threads=1,
        drain_timeout_s=5.0,
        message_bytes_max=1_048_576,
        jwt_secret=b"bench-secret-key-for-testing-only",
        jwt_issuer="wse-bench",
        jwt_audience="wse-bench",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PORT", value) for value in ("0", "65536", "+80", "http", "", " 80", "8_0", "٣")),
        ("METRICS_PORT", "-1"),
        ("WORKER_THREADS", "two"),
        ("DRAIN_TIMEOUT_MS", "9" * 5000),
        ("MAX_MESSAGE_BYTES", "x\ny"),
    ],
)
def test_a_bad_value_is_named_in_one_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}=") as error:
        Config.from_env({name: value})
    assert len(str(error.value).splitlines()) == 1


def test_a_short_secret_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match=r"^WSE_SECRET: give 32 bytes") as error:
        Config.from_env({"WSE_SECRET": "hush"})
    assert "hush" not in str(error.value)
