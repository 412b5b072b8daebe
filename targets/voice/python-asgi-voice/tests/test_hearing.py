"""Speech to text, end to end: what the provider gets, what the caller gets, and connections that are lost."""

import time

from mock_provider import MockProvider
from support import CONFIG, Caller, Gateway, eventually, gateway

BLOCK_BYTES = 640


def audio(first: int, blocks: int) -> bytes:
    """Blocks of a caller, each unlike any other."""
    return b"".join(f"block {number}|".encode().ljust(BLOCK_BYTES, b".") for number in range(first, first + blocks))


def lose(caller: Caller, provider: MockProvider) -> None:
    """The connection breaks, and no other is taken."""
    provider.refuses_to_hear = True
    provider.hang_up()
    message = caller.message()
    assert (message["kind"], message["retryable"]) == ("stt_lost", True)


def test_audio_goes_in_order_and_results_come_back(subject: Gateway, provider: MockProvider) -> None:
    with subject.caller(stream_id="call-1") as caller:
        whole = audio(0, 210)
        sizes = (2, 640, 3200, 64 * 1024, 0, len(whole))
        at = 0
        for size in sizes:
            caller.connection.send(whole[at : at + size])
            at += size
        heard = provider.heard[-1]
        eventually(lambda: len(heard.audio) == len(whole))
        assert heard.audio == whole
        provider.say('so "far"', final=False, speech_final=False)
        provider.say("so far, so good \N{GRINNING FACE}", final=True, speech_final=True)
        interim, final = caller.message(), caller.message()
        assert 0 <= interim.pop("provider_ms") < 5000
        assert interim == {
            "type": "stt_result",
            "transcript": 'so "far"',
            "is_final": False,
            "is_speech_final": False,
            "confidence": 0.75,
        }
        assert (final["transcript"], final["is_final"], final["is_speech_final"]) == (
            "so far, so good \N{GRINNING FACE}",
            True,
            True,
        )
    eventually(lambda: heard.is_over)
    assert heard.messages == [{"type": "CloseStream"}]
    assert heard.headers["Authorization"] == "Token secret"
    assert heard.query == {
        "encoding": "linear16",
        "sample_rate": "16000",
        "channels": "1",
        "interim_results": "true",
        "model": "nova-3",
        "language": "en-US",
        "punctuate": "true",
    }


def test_a_provider_that_refuses_and_comes_back(subject: Gateway, provider: MockProvider) -> None:
    provider.refuses_to_hear = True
    with subject.connected() as caller:
        caller.say(CONFIG)
        message = caller.message()
        assert (message["kind"], message["retryable"]) == ("stt_failed", True)
        provider.refuses_to_hear = False
        caller.say({**CONFIG, "stream_id": "again"})
        assert caller.message()["stream_id"] == "again"


def test_the_buffer_goes_first_after_a_reconnect_and_what_was_dropped_is_told(
    subject: Gateway, provider: MockProvider
) -> None:
    with subject.caller() as caller:
        caller.connection.send(audio(0, 5))
        lost = provider.heard[-1]
        eventually(lambda: len(lost.audio) == 5 * BLOCK_BYTES)
        lose(caller, provider)
        # Two seconds, of which one is kept.
        for first in range(5, 105, 5):
            caller.connection.send(audio(first, 5))
        time.sleep(0.35)
        provider.refuses_to_hear = False
        message = caller.message()
        assert (message["kind"], message["retryable"]) == ("audio_dropped", False)
        assert "1000 ms" in message["message"]
        caller.connection.send(audio(105, 5))
        back = provider.heard[-1]
        eventually(lambda: len(back.audio) == 55 * BLOCK_BYTES)
        assert back.audio == audio(55, 55)
        provider.say("here again", final=True, speech_final=True)
        assert caller.message()["transcript"] == "here again"


def test_a_session_outlives_a_long_outage(subject: Gateway, provider: MockProvider) -> None:
    with subject.caller() as caller:
        before = provider.upgrades
        lost_at = time.monotonic()
        lose(caller, provider)
        # A second of audio is kept; of these, 200 ms are too much.
        caller.connection.send(audio(0, 60))
        message = caller.message()
        failed_at = time.monotonic()
        assert (message["kind"], message["retryable"]) == ("stt_failed", False)
        assert provider.upgrades - before == 5
        assert 3.0 < failed_at - lost_at < 4.5, "100 ms, doubled four times"
        message = caller.message()
        assert (message["kind"], message["retryable"]) == ("audio_dropped", False)
        assert message["message"].startswith("200 ms ")
        # Speech goes on, and nothing is said of the sixth try, 2 s later.
        caller.speak("still here")
        assert caller.reply()[1]["type"] == "tts_playback_complete"
        caller.connection.send(audio(60, 20))
        caller.hears_nothing(failed_at + 3.0 - time.monotonic())
        assert provider.upgrades - before == 6
        # It is back at the seventh: the newest second goes first, and only what was dropped since is told.
        provider.refuses_to_hear = False
        message = caller.message()
        assert 3.9 < time.monotonic() - failed_at < 5.0
        assert message["kind"] == "audio_dropped"
        assert message["message"].startswith("400 ms ")
        caller.connection.send(audio(80, 5))
        back = provider.heard[-1]
        eventually(lambda: len(back.audio) == 55 * BLOCK_BYTES)
        assert back.audio == audio(30, 55)
        provider.say("here again", final=True, speech_final=True)
        assert caller.message()["transcript"] == "here again"
        # A later loss begins anew, with tries that follow soon; nothing was dropped, so nothing is told.
        before = provider.upgrades
        lose(caller, provider)
        eventually(lambda: provider.upgrades - before == 2, 1)
        provider.refuses_to_hear = False
        eventually(lambda: provider.heard[-1] is not back, 1)
        caller.hears_nothing(0.3)


def test_a_session_that_ends_ends_the_tries(subject: Gateway, provider: MockProvider) -> None:
    with subject.caller() as caller:
        lose(caller, provider)
        assert caller.error() == "stt_failed"
    before = provider.upgrades
    time.sleep(2.5)
    assert provider.upgrades == before


def test_silence_is_bridged_and_ends_an_utterance(provider: MockProvider) -> None:
    with gateway(provider.url, STT_PONG_MS="400", WORKER_THREADS="1") as subject, subject.caller() as caller:
        caller.connection.send(audio(0, 1))
        provider.say("and then", final=True, speech_final=False)
        assert not caller.message()["is_speech_final"]
        spoke_at = time.monotonic()
        forced = caller.message(within_s=7)
        assert 4.8 < time.monotonic() - spoke_at < 5.7
        assert (forced["transcript"], forced["is_final"], forced["is_speech_final"], forced["confidence"]) == (
            "",
            True,
            True,
            0,
        )
        heard = provider.heard[-1]
        eventually(lambda: {"type": "KeepAlive"} in heard.messages)
        # A provider that answers pings is not lost; one that does not, is.
        caller.hears_nothing(1.0)
        provider.answers_pings = False
        try:
            lost_at = time.monotonic()
            assert caller.error(within_s=7) == "stt_lost"
            assert time.monotonic() - lost_at < 6
        finally:
            provider.answers_pings = True


def test_an_upgrade_that_hangs_is_not_waited_for(provider: MockProvider) -> None:
    provider.hangs_at_upgrade = True
    try:
        with gateway(provider.url, READY_MS="300", WORKER_THREADS="1") as subject, subject.connected() as caller:
            asked_at = time.monotonic()
            caller.say(CONFIG)
            assert caller.error() == "stt_failed"
            assert 0.25 < time.monotonic() - asked_at < 1.5
    finally:
        provider.hangs_at_upgrade = False


def test_a_gateway_without_its_provider_says_so(provider: MockProvider) -> None:
    with gateway("http://127.0.0.1:1", provider.url) as subject:
        answers = []
        for _ in range(4):
            with subject.connected() as caller:
                caller.say(CONFIG)
                answers.append(caller.message()["type"])
        assert answers == ["error", "ready", "error", "ready"], "a session takes a provider in its turn"
