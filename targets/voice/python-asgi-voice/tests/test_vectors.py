"""The vectors that all gateways share: one message, and what comes back."""

import json
import struct
from typing import Any

import pytest

from support import CONFIG, VECTORS, Caller, Gateway

CASES: list[Any] = json.loads((VECTORS / "messages.json").read_text())["cases"]


def send(caller: Caller, case: dict[str, Any]) -> None:
    if case.get("close") is not None:
        # The head of a frame alone, with its mask: its length must be enough.
        opcode, size = (0x81, case["text_bytes"]) if "text_bytes" in case else (0x82, case["binary_bytes"])
        caller.connection.socket.sendall(struct.pack("!BBQ", opcode, 0xFF, size) + bytes(4))
    elif "text" in case:
        caller.connection.send(case["text"])
    elif "binary_bytes" in case:
        caller.connection.send(bytes(case["binary_bytes"]))
    else:
        caller.speak("x" * case["speak_text_bytes"])


def answer_to(caller: Caller) -> dict[str, Any]:
    """The next message that is neither audio nor the end of a reply."""
    while True:
        _, message = caller.reply()
        if message["type"] != "tts_playback_complete":
            return message


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_messages(case: dict[str, Any], subject: Gateway) -> None:
    with subject.connected() as caller:
        if case["when"] != "first":
            caller.say(CONFIG if case["when"] == "ready" else {"type": "config", "audio": False})
            assert caller.message()["type"] == "ready"
        send(caller, case)
        if case["close"] is not None:
            assert caller.close_code() == case["close"]
            return
        if case["kind"] == "ready":
            message = caller.message()
            assert message["type"] == "ready"
            assert message["protocol_version"] == "1.0"
            assert message["stream_id"] == json.loads(case["text"]).get("stream_id", message["stream_id"]) != ""
        elif case["kind"] is not None:
            message = caller.message()
            assert (message["type"], message["kind"], message["retryable"]) == ("error", case["kind"], False)
            assert message["message"]
        # Nothing else came, and the session goes on.
        caller.connection.send("?")
        assert answer_to(caller)["kind"] == "bad_message"


def test_there_are_vectors() -> None:
    assert len(CASES) > 40
