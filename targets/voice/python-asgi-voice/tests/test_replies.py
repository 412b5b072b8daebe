"""Text to speech, end to end: whole replies, queues, interruptions, and providers that fail."""

import time
from typing import Any
from urllib.parse import quote

import pytest

from mock_provider import BLOCK_BYTES, Behaviour, MockProvider, audio, reply_audio, reset, silent, status
from support import CONFIG, Gateway, eventually


def test_a_reply_is_whole_and_in_order(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(60, 0.002)
    with subject.caller() as caller:
        for number in (1, 2):
            before_ms = time.time() * 1000
            caller.speak(f"text {number}")
            pcm, message = caller.reply()
            assert pcm == reply_audio(f"text {number}", 60)
            assert before_ms - 1 <= message.pop("timestamp") <= time.time() * 1000 + 1
            assert message == {"type": "tts_playback_complete", "speak": number, "provider_ms": 12.5, "dropped_bytes": 0}


def test_audio_is_passed_on_as_it_comes(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(10, 0.1)
    with subject.caller() as caller:
        asked_at = time.monotonic()
        caller.speak("slowly")
        assert isinstance(caller.next(), bytes)
        assert time.monotonic() - asked_at < 0.4, "the whole takes a second"


ASKED: dict[str, tuple[dict[str, str], str, tuple[str, str], dict[str, Any]]] = {
    "deepgram": (
        {"provider": "deepgram", "model": "aura 2"},
        "/v1/speak?model=aura+2&encoding=linear16&sample_rate=24000",
        ("Authorization", "Token secret"),
        {"text": "hello é"},
    ),
    "elevenlabs": (
        {"provider": "elevenlabs", "model": "m", "voice_id": "a/b"},
        f"/v1/text-to-speech/{quote('a/b', safe='')}/stream?output_format=pcm_24000",
        ("xi-api-key", "secret"),
        {"text": "hello é", "model_id": "m"},
    ),
    "openai": (
        {"provider": "openai", "model": "m"},
        "/v1/audio/speech",
        ("Authorization", "Bearer secret"),
        {"model": "m", "input": "hello é", "voice": "default", "response_format": "pcm"},
    ),
    "cartesia": (
        {"provider": "cartesia", "model": "m", "voice_id": "v"},
        "/tts/bytes",
        ("Authorization", "Bearer secret"),
        {
            "model_id": "m",
            "transcript": "hello é",
            "voice": {"mode": "id", "id": "v"},
            "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000},
        },
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_each_provider_is_asked_in_its_way(subject: Gateway, provider: MockProvider, name: str) -> None:
    config, path, (field, key), body = ASKED[name]
    with subject.caller(tts_config=config) as caller:
        caller.speak("hello é")
        pcm, message = caller.reply()
    assert pcm == reply_audio("hello é", 3)
    assert message["type"] == "tts_playback_complete"
    (spoken,) = provider.spoken
    assert (spoken.path, spoken.body) == (path, body)
    assert spoken.headers[field] == key
    assert spoken.headers["Content-Type"] == "application/json"


def test_replies_queue_without_flush(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(20, 0.005)
    with subject.caller() as caller:
        for text in ("one", "two", "three"):
            caller.speak(text, flush=False)
        for number, text in enumerate(("one", "two", "three"), 1):
            pcm, message = caller.reply()
            assert (pcm, message["speak"]) == (reply_audio(text, 20), number)


def test_flush_drops_what_plays_and_what_waits(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(100, 0.02)
    dropped = subject.metric('voice_speaks_total{outcome="dropped"}')
    with subject.caller() as caller:
        caller.speak("plays")
        caller.speak("waits", flush=False)
        assert caller.next() == reply_audio("plays", 1)
        provider.usual = audio(4)
        caller.speak("flushes")
        pcm, message = caller.reply()
        assert message["speak"] == 3
        assert pcm.endswith(reply_audio("flushes", 4))
        rest = pcm.removesuffix(reply_audio("flushes", 4))
        assert rest == reply_audio("plays", 100)[BLOCK_BYTES : BLOCK_BYTES + len(rest)], "before the speak was read"
    assert [spoken.text for spoken in provider.spoken] == ["plays", "flushes"]
    assert subject.metric('voice_speaks_total{outcome="dropped"}') == dropped + 2


def test_clear_stops_a_reply_at_once_and_the_next_one_is_whole(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(200, 0.01)
    cancelled = subject.metric('voice_requests_total{provider="deepgram_tts",outcome="cancelled"}')
    with subject.caller() as caller:
        caller.speak("interrupted")
        assert caller.next() == reply_audio("interrupted", 1)
        (spoken,) = provider.spoken
        cleared_at = time.monotonic()
        caller.say({"type": "clear"})
        eventually(lambda: spoken.left_at is not None)
        assert spoken.left_at is not None
        assert spoken.left_at - cleared_at < 0.1
        # What was under way is over within 100 ms; after that there is silence.
        while time.monotonic() < cleared_at + 0.1:
            try:
                assert isinstance(caller.next(0.05), bytes)
            except TimeoutError:
                break
        caller.hears_nothing(0.3)
        provider.usual = audio(5)
        caller.speak("whole")
        pcm, message = caller.reply()
        assert (pcm, message["speak"]) == (reply_audio("whole", 5), 2)
        provider.say("still heard", final=True, speech_final=True)
        assert caller.message()["transcript"] == "still heard"
    assert subject.metric('voice_requests_total{provider="deepgram_tts",outcome="cancelled"}') == cancelled + 1


def test_clear_before_the_first_byte_cancels_the_request(subject: Gateway, provider: MockProvider) -> None:
    provider.next.append(silent())
    with subject.caller() as caller:
        caller.speak("never")
        eventually(lambda: provider.spoken)
        cleared_at = time.monotonic()
        caller.say({"type": "clear"})
        eventually(lambda: provider.spoken[0].left_at is not None)
        assert time.monotonic() - cleared_at < 0.1
        caller.hears_nothing(0.7)


def test_what_may_not_be_interrupted_is_not(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(30, 0.01)
    with subject.caller() as caller:
        caller.speak("stays", allow_interruption=False)
        caller.speak("goes", flush=False)
        assert caller.next() == reply_audio("stays", 1)
        caller.say({"type": "clear"})
        caller.speak("next")
        pcm, message = caller.reply()
        assert (pcm, message["speak"]) == (reply_audio("stays", 30)[BLOCK_BYTES:], 1)
        pcm, message = caller.reply()
        assert (pcm, message["speak"]) == (reply_audio("next", 30), 3)


@pytest.mark.parametrize("fault", [status(500), status(503), reset()], ids=["500", "503", "reset"])
def test_a_fault_before_the_first_byte_is_tried_again_once(
    subject: Gateway, provider: MockProvider, fault: Behaviour
) -> None:
    provider.next.append(fault)
    with subject.caller() as caller:
        caller.speak("again")
        pcm, message = caller.reply()
        assert (pcm, message["type"]) == (reply_audio("again", 3), "tts_playback_complete")
        assert len(provider.spoken) == 2
        provider.next += (fault, fault)
        caller.speak("twice")
        message = caller.message()
        assert (message["kind"], message["retryable"]) == ("tts_failed", True)
        assert len(provider.spoken) == 4


@pytest.mark.parametrize(
    ("fault", "kind", "blocks"),
    [
        (status(429), "tts_rate_limited", 0),
        (status(400), "tts_failed", 0),
        (audio(0), "tts_failed", 0),
        (silent(), "tts_timeout", 0),
        (audio(9, stalls_after=3), "tts_timeout", 3),
        (audio(9, 0.01, breaks_after=4), "tts_failed", 4),
    ],
    ids=["429", "400", "empty", "silent", "stalls", "breaks"],
)
def test_other_faults_are_told_once(
    subject: Gateway, provider: MockProvider, fault: Behaviour, kind: str, blocks: int
) -> None:
    provider.next.append(fault)
    failed = subject.metric('voice_speaks_total{outcome="failed"}')
    errors = subject.metric(f'voice_errors_total{{kind="{kind}"}}')
    with subject.caller() as caller:
        begun = time.monotonic()
        caller.speak("fails")
        caller.speak("works", flush=False)
        pcm, message = caller.reply()
        assert message["kind"] == kind
        assert pcm == reply_audio("fails", blocks)
        assert time.monotonic() - begun < 1.5
        pcm, message = caller.reply()
        assert (pcm, message["speak"]) == (reply_audio("works", 3), 2)
    assert [spoken.text for spoken in provider.spoken] == ["fails", "works"], "no second try"
    assert subject.metric('voice_speaks_total{outcome="failed"}') == failed + 1
    assert subject.metric(f'voice_errors_total{{kind="{kind}"}}') == errors + 1


def test_callers_do_not_hear_each_other(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(40, 0.003)
    with subject.caller() as one, subject.caller() as other:
        for turn in range(3):
            one.speak(f"one {turn}")
            other.speak(f"other {turn}")
            assert one.reply()[0] == reply_audio(f"one {turn}", 40)
            assert other.reply()[0] == reply_audio(f"other {turn}", 40)


@pytest.mark.parametrize("text", ["x" * 100_000, "\N{GRINNING FACE}" * 25_000], ids=["narrow", "wide"])
def test_texts_that_wait_are_bounded(subject: Gateway, provider: MockProvider, text: str) -> None:
    provider.usual = audio(1000, 0.01)
    with subject.caller() as caller:
        for _ in range(12):
            caller.speak(text, flush=False)
        _, message = caller.reply()
        assert message["kind"] == "too_large"


def test_a_caller_that_leaves_ends_its_request(subject: Gateway, provider: MockProvider) -> None:
    provider.usual = audio(500, 0.01)
    with subject.connected() as caller:
        caller.say(CONFIG)
        caller.message()
        caller.speak("unheard")
        caller.next()
        caller.connection.socket.close()
    eventually(lambda: provider.spoken[0].left_at is not None, 1)
    eventually(lambda: subject.metric("voice_sessions") == 0)
