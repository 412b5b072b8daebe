"""The gateway's start and its end."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from mock_provider import MockProvider, audio, reply_audio
from support import TTS, Gateway, environment, eventually, gateway


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "http"), ("PROVIDER_URLS", "http://a,,http://b"), ("IDLE_MS", "0"), ("PROVIDER_KEY", "a\nb")],
)
def test_a_bad_value_ends_it_with_2_and_one_line(name: str, value: str) -> None:
    command = [sys.executable, "-m", "voice_gateway"]
    ended = subprocess.run(command, env=environment(**{name: value}), capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert name in line


def test_the_end_lets_a_reply_end_and_closes_who_is_quiet(provider: MockProvider) -> None:
    provider.usual = audio(150, 0.01)
    with gateway(provider.url) as subject, contextlib.ExitStack() as stack:
        quiet = [stack.enter_context(subject.caller()) for _ in range(5)]
        new = stack.enter_context(subject.connected())
        speaking = stack.enter_context(subject.caller())
        speaking.speak("to the end")
        speaking.speak("not begun", flush=False)
        first = speaking.next()
        assert isinstance(first, bytes)
        begun = time.monotonic()
        subject.process.send_signal(signal.SIGTERM)
        assert [caller.close_code(1) for caller in (*quiet, new)] == [1001] * 6
        assert time.monotonic() - begun < 0.8
        # The port is open as long as there is a session, and says why nobody may come.
        for _ in range(6):
            assert subject.http("GET", "/")[::2] == (503, b'{"status":"DRAINING"}')
            with pytest.raises(InvalidStatus) as refusal, subject.connected():
                pass
            answer = refusal.value.response
            assert (answer.status_code, json.loads(answer.body)["cause"]) == (503, "draining")
            assert answer.headers["Retry-After"] == "1"
        code, headers, body = subject.http("POST", "/speak", {"text": "too late", "tts_config": TTS})
        assert (code, json.loads(body)["cause"], headers["retry-after"]) == (503, "draining", "1")
        assert subject.metric('voice_refused_total{cause="draining"}') == 7
        rest, message = speaking.reply()
        assert first + rest == reply_audio("to the end", 150)
        assert message["type"] == "tts_playback_complete"
        assert speaking.close_code() == 1001
        assert subject.process.wait(3) == 0
        assert [spoken.text for spoken in provider.spoken] == ["to the end"]
        eventually(lambda: all(heard.is_over for heard in provider.heard))
        assert all(heard.messages == [{"type": "CloseStream"}] for heard in provider.heard)


def test_the_end_does_not_wait_for_ever(provider: MockProvider) -> None:
    provider.usual = audio(3000, 0.01)
    with gateway(provider.url, DRAIN_TIMEOUT_MS="500") as subject, subject.caller() as caller:
        caller.speak("without end")
        caller.next()
        begun = time.monotonic()
        subject.process.send_signal(signal.SIGINT)
        assert caller.close_code() == 1001
        assert subject.process.wait(5) == 0
        assert 0.4 < time.monotonic() - begun < 2.5
        eventually(lambda: provider.spoken[0].left_at is not None)


def test_a_worker_that_dies_is_replaced_and_its_sessions_forgotten(provider: MockProvider) -> None:
    with gateway(provider.url, MAX_SESSIONS="4", MAX_SESSIONS_PER_ADDRESS="4") as subject, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(subject.caller()) for _ in range(4)]
        for child in children(subject):
            os.kill(child, signal.SIGKILL)
        assert {client.close_code() for client in clients} <= {None, 1006}
        for _ in range(4):
            stack.enter_context(subject.caller())
        with pytest.raises(InvalidStatus), subject.connected():
            pass
        assert subject.end() == 0


def children(subject: Gateway) -> list[int]:
    pid = subject.process.pid
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    assert len(found) == 2
    return found
