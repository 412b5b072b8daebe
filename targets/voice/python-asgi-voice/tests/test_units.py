"""Parts without I/O, and what workers share."""

import json
import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_common.variables import BaseUrl, ConfigError
from voice_gateway.addresses import AddressFile
from voice_gateway.admission import Admission, Admitted
from voice_gateway.audio import BLOCK_BYTES, SentTimes, WaitingAudio
from voice_gateway.config import Config
from voice_gateway.kept import KEPT_BYTES_MAX, KeptFile
from voice_gateway.messages import SttResult, parse_deepgram, stt_result
from voice_gateway.metrics import render
from voice_gateway.outbox import Frame, Outbox, Reply
from voice_gateway.shared import Refusal, Shares


def test_defaults_are_those_of_the_contract() -> None:
    config = Config.from_env({})
    assert config.provider_urls == (BaseUrl("127.0.0.1", 9100, "", "127.0.0.1:9100"),)
    assert (config.port, config.provider_key, config.auth_token) == (3001, "", "")
    assert (config.sessions_max, config.sessions_per_address_max, config.upgrades_per_second_max) == (0, 0, 0)
    assert (config.drain_timeout_s, config.ready_s, config.idle_s) == (5.0, 30.0, 300.0)
    assert (config.tts_first_s, config.tts_gap_s, config.stt_pong_s) == (10.0, 2.0, 5.0)
    assert (config.audio_buffer_ms, config.out_buffer_bytes) == (5000, 1_048_576)
    assert config.workers == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PORT", value) for value in ("0", "65536", "", "1.5")),
        *(("PROVIDER_URLS", value) for value in ("", "host", "https://host", "http://a,", "http://a http://b")),
        *((name, "-1") for name in ("MAX_SESSIONS", "MAX_SESSIONS_PER_ADDRESS", "RATE_LIMIT_RPS", "DRAIN_TIMEOUT_MS")),
        *((name, "0") for name in ("WORKER_THREADS", "READY_MS", "IDLE_MS", "TTS_FIRST_MS", "TTS_GAP_MS", "STT_PONG_MS")),
        *((name, "many") for name in ("AUDIO_BUFFER_MS", "OUT_BUFFER_BYTES")),
        ("PROVIDER_KEY", "é"),
        ("EVENT_LOOP", "twisted"),
    ],
)
def test_a_bad_value_is_named_in_one_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}=") as error:
        Config.from_env({name: value})
    assert len(str(error.value).splitlines()) == 1


@given(st.lists(st.one_of(st.integers(0, 4000).map(lambda half: 2 * half), st.just(-1)), max_size=40))
def test_waiting_audio_is_the_newest_in_whole_blocks(steps: list[int]) -> None:
    """Steps are pushes of so many bytes, or a message that is sent."""
    limit, waiting = 10 * BLOCK_BYTES, WaitingAudio()
    pushed, position, dropped, end = b"", 0, 0, 0
    for step in steps:
        if step >= 0:
            pcm = bytes((end + at) // 2 % 251 for at in range(step))
            end += step
            pushed += pcm
            waiting.push(pcm, limit)
        elif waiting:
            start, piece = waiting.peek()
            assert start >= position
            assert start in (position, end) or start % BLOCK_BYTES == 0
            assert pushed[start : start + len(piece)] == piece
            dropped += start - position
            position = start + len(piece)
            waiting.sent(start, piece)
            assert end - position <= limit
    while waiting:
        start, piece = waiting.peek()
        dropped += start - position
        position = start + len(piece)
        waiting.sent(start, piece)
    assert position <= end
    assert waiting.take_dropped_ms() == (dropped + end - position) // 32
    assert waiting.take_dropped_ms() == 0


def test_audio_that_was_sent_while_it_was_dropped_is_not_skipped_twice() -> None:
    waiting = WaitingAudio()
    waiting.push(bytes(4 * BLOCK_BYTES), 100_000)
    start, piece = waiting.peek()
    waiting.trim(BLOCK_BYTES)
    waiting.sent(start, piece)
    assert not waiting
    waiting.push(b"ab", 100_000)
    assert waiting.peek() == (4 * BLOCK_BYTES, b"ab")


def test_the_time_of_a_result_counts_from_its_last_audio() -> None:
    sent = SentTimes()
    assert sent.since_ms(1.0) == 0
    sent.add(3200)
    time.sleep(0.03)
    sent.add(3200)
    assert sent.since_ms(0.1) >= 30
    assert sent.since_ms(0.15) < 30
    assert sent.since_ms(9.0) < 30


@given(st.lists(st.one_of(st.integers(1, 5000), st.just(0)), max_size=60), st.integers(960, 9000))
def test_the_outbox_keeps_whole_blocks_and_its_limit(steps: list[int], limit: int) -> None:
    """Steps are audio of so many bytes, or a frame that is taken."""
    outbox, reply = Outbox(limit), Reply(1, "text", may_be_interrupted=True, text_bytes=4)
    whole = bytes(at % 251 for at in range(sum(steps)))
    kept, at = b"", 0
    for step in steps:
        if step:
            left = outbox.squeeze(reply, whole[at : at + step])
            at += step
            if left:
                outbox.push(Frame(left, reply, len(left)))
            # A block that was begun is ended.
            assert outbox.size_bytes < limit + 960
        elif outbox:
            kept += outbox.pop().data
    while outbox:
        kept += outbox.pop().data
    assert outbox.size_bytes == 0
    assert len(kept) + reply.dropped_bytes == reply.position == len(whole)
    # What is left is what was sent, less whole blocks; the last one may be a part.
    position = 0
    for block in (kept[start : start + 960] for start in range(0, len(kept), 960)):
        while whole[position : position + len(block)] != block:
            position += 960
            assert position <= len(whole)
        position += len(block)


def test_the_frames_of_a_dropped_reply_are_dropped_and_no_others() -> None:
    outbox = Outbox(10_000)
    one = Reply(1, "one", may_be_interrupted=True, text_bytes=3)
    other = Reply(2, "other", may_be_interrupted=True, text_bytes=5)
    frames = [Frame(b"a" * 100, one, 98), Frame(b"result"), Frame(b"end", one, ends_reply=True), Frame(b"b", other, 1)]
    for frame in frames:
        outbox.push(frame)
    outbox.drop(one)
    assert outbox.size_bytes == 7
    assert [outbox.pop().data, outbox.pop().data] == [b"result", b"b"]
    assert not outbox


def test_results_wait_aside_while_there_is_no_room_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("voice_gateway.outbox.monotonic", lambda: now)
    outbox = Outbox(10)
    outbox.push(Frame(b"x" * 10))
    outbox.push_result(b"old")
    now = 100.4
    outbox.push_result(b"new")
    now = 100.6
    assert outbox.pop().data == b"x" * 10
    assert outbox.pop().data == b"new", "the other one waited for over half a second"
    assert not outbox
    outbox.push_result(b"next")
    assert outbox.pop().data == b"next"


def test_addresses_are_counted_over_workers_and_places_are_used_again() -> None:
    file = AddressFile(2, places=4)
    one, other = file.open(0), file.open(1)
    with one.lock():
        places = [one.place(f"10.0.0.{number}") for number in range(4)]
        assert None not in places
        for place in places:
            assert place is not None
            one.add_session(place)
            other.add_session(place)
        assert one.place("10.0.0.9") is None, "all are in use"
    at = places[0]
    assert at is not None
    one.end_session(at)
    with other.lock():
        assert other.place("10.0.0.9") is None, "the other worker has one"
        assert other.sessions(at) == 1
    file.forget(1)
    with other.lock():
        assert other.place("10.0.0.9") == at
        assert other.sessions(at) == 0
        assert other.place("10.0.0.1") == places[1], "others stay where they are"


def test_an_address_has_a_second_of_its_own() -> None:
    addresses = AddressFile(1).open(0)
    with addresses.lock():
        at = addresses.place("10.0.0.1")
        assert at is not None
        assert [addresses.may_upgrade(at, 2) for _ in range(3)] == [True, True, False]
        beside = addresses.place("10.0.0.2")
        assert beside is not None
        assert addresses.may_upgrade(beside, 2)


def test_admission_is_exact_between_threads() -> None:
    config = Config.from_env({"MAX_SESSIONS": "50", "MAX_SESSIONS_PER_ADDRESS": "20"})
    shares = Shares(4)
    taken: list[int] = [0] * 4

    def work(worker: int) -> None:
        admission = Admission(config, shares.open(worker))
        for turn in range(400):
            answer = admission.ask(f"10.0.0.{turn % 2}", None)
            if isinstance(answer, Admitted):
                taken[worker] += 1
                if turn % 3 == 0:
                    admission.give_back(answer)
                    taken[worker] -= 1

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 40, "twenty of each address"
    share = shares.open(0)
    assert "voice_sessions 40\n" in render(share.book)
    assert Admission(config, share).ask("10.0.0.0", None) is Refusal.PER_ADDRESS
    admission = Admission(config, share)
    assert [isinstance(admission.ask(f"10.0.1.{number}", None), Admitted) for number in range(10)] == [True] * 10
    assert admission.ask("10.0.1.99", None) is Refusal.CAPACITY


def test_an_answer_is_kept_for_all_workers_and_for_a_while() -> None:
    file = KeptFile()
    one, other = file.open(), file.open()
    assert other.get() is None
    one.put(b"x" * KEPT_BYTES_MAX, 60)
    assert other.get() == b"x" * KEPT_BYTES_MAX
    other.put(b"short", 0)
    assert one.get() is None


@given(st.text(max_size=50), st.booleans(), st.floats(0, 1))
def test_a_result_is_json_whatever_was_said(transcript: str, final: bool, confidence: float) -> None:
    result = SttResult(transcript, final, not final, confidence, 1.5)
    message = json.loads(stt_result(result))
    assert message.pop("type") == "stt_result"
    assert message == result._asdict()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"type":"Metadata"}', '{"type":"Results"}', "[" * 100_000),
        '{"type":"Results","channel":{"alternatives":[]},"is_final":true,"speech_final":true,"start":0,"duration":1}',
        json.dumps({"type": "Results", "is_final": True, "speech_final": True, "start": 0, "duration": 1, "channel": 7}),
        '{"type":"Results","is_final":1,"speech_final":1,"start":1e999,"duration":1,"channel":{"alternatives":[{"transcript":"","confidence":1}]}}',
    ],
)
def test_what_is_no_result_is_none(text: str) -> None:
    assert parse_deepgram(text) is None
