"""The environment."""

import pytest

from http_granian.config import Config, ConfigError


def test_defaults_are_those_of_the_contract() -> None:
    assert Config.from_env({}) == Config(port=3000, workers=1, drain_timeout_s=5.0, body_bytes_max=1_048_576)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PORT", value) for value in ("0", "65536", "+80", "http", "", " 80", "8_0", "٣")),
        *(("WORKER_THREADS", value) for value in ("0", "two")),
        ("DRAIN_TIMEOUT_MS", "9" * 5000),
        ("MAX_BODY_BYTES", "x\ny"),
    ],
)
def test_a_bad_value_is_named_in_one_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}=") as error:
        Config.from_env({name: value})
    assert len(str(error.value).splitlines()) == 1
