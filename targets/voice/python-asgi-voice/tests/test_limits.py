"""Admission, and the limits of a session, end to end."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.exceptions import InvalidStatus

from mock_provider import BLOCK_BYTES, MockProvider, audio, reply_audio
from support import CONFIG, Caller, Gateway, eventually, gateway


def burst(subject: Gateway, upgrades: int, stack: contextlib.ExitStack) -> tuple[list[Caller], Counter[tuple[int, str]]]:
    """So many upgrades at once: the sessions, and why others were refused."""
    together = threading.Barrier(upgrades)

    def connect() -> Caller | tuple[int, str]:
        together.wait()
        try:
            return stack.enter_context(subject.connected())
        except InvalidStatus as refusal:
            answer = refusal.response
            assert answer.headers["Retry-After"] == "1"
            return answer.status_code, json.loads(answer.body)["cause"]

    with ThreadPoolExecutor(upgrades) as pool:
        outcomes = [future.result() for future in [pool.submit(connect) for _ in range(upgrades)]]
    sessions = [outcome for outcome in outcomes if isinstance(outcome, Caller)]
    return sessions, Counter(outcome for outcome in outcomes if not isinstance(outcome, Caller))


@pytest.mark.parametrize(
    ("variable", "status", "cause"),
    [
        ("MAX_SESSIONS", 503, "capacity"),
        ("MAX_SESSIONS_PER_ADDRESS", 429, "per_address"),
    ],
)
def test_admission_is_exact_under_bursts(provider: MockProvider, variable: str, status: int, cause: str) -> None:
    with gateway(provider.url, **{variable: "7"}) as subject, contextlib.ExitStack() as stack:
        sessions, refusals = burst(subject, 20, stack)
        assert (len(sessions), refusals) == (7, {(status, cause): 13})
        assert subject.metric(f'voice_refused_total{{cause="{cause}"}}') == 13
        assert subject.metric("voice_sessions") == 7
        for session in sessions:
            # A reset, not a close.
            raw = session.connection.socket
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.close()
        eventually(lambda: subject.metric("voice_sessions") == 0)
        sessions, refusals = burst(subject, 8, stack)
        assert (len(sessions), refusals) == (7, {(status, cause): 1}), "the places are free again"


def test_upgrades_in_a_second_are_limited(provider: MockProvider) -> None:
    with gateway(provider.url, RATE_LIMIT_RPS="5") as subject, contextlib.ExitStack() as stack:
        for _ in range(2):
            sessions, refusals = burst(subject, 12, stack)
            assert (len(sessions), refusals) == (5, {(429, "rate"): 7})
            time.sleep(1.05)
        assert subject.metric('voice_refused_total{cause="rate"}') == 14
        assert subject.http("GET", "/")[0] == 200


def test_a_flood_of_bad_messages_ends_a_session(subject: Gateway) -> None:
    with subject.connected() as caller:
        for _ in range(99):
            caller.connection.send("?")
        for _ in range(99):
            assert caller.error() == "bad_message"
        caller.connection.send("?")
        assert caller.close_code() == 1008


def test_silence_ends_a_session(provider: MockProvider) -> None:
    with gateway(provider.url, IDLE_MS="600", WORKER_THREADS="1") as subject, subject.caller() as caller:
        for _ in range(4):
            time.sleep(0.3)
            # A ping is not silence.
            caller.connection.ping().wait(1)
        begun = time.monotonic()
        assert caller.close_code() == 1001
        assert 0.5 < time.monotonic() - begun < 0.8


def test_without_a_config_a_session_ends(subject: Gateway) -> None:
    with subject.connected() as caller:
        begun = time.monotonic()
        assert caller.close_code(within_s=12) == 1008
        assert 9.5 < time.monotonic() - begun < 11


def slow_socket(subject: Gateway) -> socket.socket:
    """A socket with little room."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(5)
    client.connect(("127.0.0.1", subject.port))
    return client


def test_a_slow_reader_loses_audio_and_nobody_else_does(provider: MockProvider) -> None:
    provider.usual = audio(8000)
    whole = reply_audio("long", 8000)
    with (
        gateway(provider.url, OUT_BUFFER_BYTES="50000", WORKER_THREADS="1") as subject,
        subject.connected(sock=slow_socket(subject), max_queue=1) as slow,
        subject.caller() as other,
    ):
        slow.say(CONFIG)
        slow.message()
        slow.speak("long")
        eventually(lambda: provider.spoken and provider.spoken[0].is_complete)
        provider.usual = audio(50, 0.005)
        other.speak("short")
        pcm, message = other.reply()
        assert (pcm, message["dropped_bytes"]) == (reply_audio("short", 50), 0)
        time.sleep(0.3)
        pcm, message = slow.reply(within_s=10)
        assert message["type"] == "tts_playback_complete"
        assert message["dropped_bytes"] == len(whole) - len(pcm) > 0
        # Whole blocks are left, in their order.
        blocks = [pcm[at : at + BLOCK_BYTES] for at in range(0, len(pcm), BLOCK_BYTES)]
        positions = [whole.index(block) for block in blocks]
        assert positions == sorted(positions)
        assert not any(position % BLOCK_BYTES for position in positions)
        # It is served again as others are.
        slow.speak("after")
        pcm, message = slow.reply()
        assert (pcm, message["dropped_bytes"]) == (reply_audio("after", 50), 0)


def test_a_reader_that_is_stuck_is_closed(provider: MockProvider) -> None:
    provider.usual = audio(20_000)
    with (
        gateway(provider.url, WORKER_THREADS="1") as subject,
        subject.connected(sock=slow_socket(subject), max_queue=1) as stuck,
    ):
        stuck.say(CONFIG)
        stuck.message()
        stuck.speak("long")
        begun = time.monotonic()
        eventually(lambda: subject.metric("voice_sessions") == 0, 14)
        assert time.monotonic() - begun > 9.5
        assert stuck.close_code() == 1008
