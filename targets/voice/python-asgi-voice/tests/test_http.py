"""The HTTP surface, end to end."""

import contextlib
import http.client
import json
import socket

import pytest

from mock_provider import BLOCK_BYTES, Behaviour, MockProvider, audio, reply_audio, silent, status
from support import TTS, Gateway, eventually, gateway


def test_paths_and_methods(subject: Gateway) -> None:
    assert subject.http("GET", "/")[::2] == (200, b'{"status":"OK"}')
    assert json.loads(subject.start_line)["libraries"]["aiohttp"]
    for method, path, expected in (
        ("GET", "/nothing", 404),
        ("POST", "/", 405),
        ("DELETE", "/voices", 405),
        ("GET", "/speak", 405),
        ("POST", "/ws", 405),
        ("POST", "/metrics", 405),
        ("GET", "/ws", 426),
    ):
        code, headers, body = subject.http(method, path)
        assert code == expected, path
        assert set(json.loads(body)) == {"error", "cause"}
        assert headers["content-type"] == "application/json"


def test_voices_are_kept(subject: Gateway, provider: MockProvider) -> None:
    expected = {"id": "v1", "name": "Ada", "language": "en", "gender": "female", "accent": "none", "sample": "x"}
    for _ in range(4):
        code, _, body = subject.http("GET", "/voices")
        assert (code, json.loads(body)) == (200, {"elevenlabs": [expected]})
    assert provider.voices_asked == 1, "whichever worker is asked"


def test_speech_over_http(subject: Gateway, provider: MockProvider) -> None:
    provider.next.append(audio(30, 0.002))
    code, headers, body = subject.http("POST", "/speak", {"text": "hello", "tts_config": TTS})
    assert (code, body) == (200, reply_audio("hello", 30))
    assert headers["content-type"] == "audio/pcm"
    assert (headers["x-audio-format"], headers["x-sample-rate"]) == ("linear16", "24000")
    assert float(headers["x-provider-ms"]) == 12.5


def test_speech_over_http_comes_as_it_arrives(subject: Gateway, provider: MockProvider) -> None:
    provider.next.append(audio(3, 0.25))
    connection = http.client.HTTPConnection("127.0.0.1", subject.port, timeout=5)
    with contextlib.closing(connection):
        connection.request("POST", "/speak", json.dumps({"text": "hello", "tts_config": TTS}))
        answer = connection.getresponse()
        assert answer.read(BLOCK_BYTES) == reply_audio("hello", 1)
        assert not provider.spoken[0].is_complete
        assert len(answer.read()) == 2 * BLOCK_BYTES


@pytest.mark.parametrize(
    ("body", "code", "cause"),
    [
        ("{", 400, "bad_json"),
        ("[]", 400, "bad_json"),
        (b"\xff", 400, "bad_json"),
        ({"tts_config": TTS}, 400, "bad_field"),
        ({"text": 7, "tts_config": TTS}, 400, "bad_field"),
        ({"text": "hello"}, 400, "bad_field"),
        ({"text": "hello", "tts_config": {**TTS, "provider": "oracle"}}, 400, "bad_field"),
        ({"text": "", "tts_config": TTS}, 400, "empty_text"),
        ({"text": "x" * 102_401, "tts_config": TTS}, 413, "too_large"),
        ("x" * (1 << 21), 413, "too_large"),
    ],
)
def test_requests_that_are_not_forwarded(
    subject: Gateway, provider: MockProvider, body: object, code: int, cause: str
) -> None:
    answer, _, told = subject.http("POST", "/speak", body)
    assert (answer, json.loads(told)["cause"]) == (code, cause)
    assert provider.spoken == []


@pytest.mark.parametrize(
    ("faults", "code", "cause"),
    [
        ([status(500), status(500)], 502, "provider_failed"),
        ([status(429)], 502, "provider_failed"),
        ([silent()], 504, "provider_timeout"),
    ],
)
def test_providers_that_fail(
    subject: Gateway, provider: MockProvider, faults: list[Behaviour], code: int, cause: str
) -> None:
    provider.next += faults
    answer, _, told = subject.http("POST", "/speak", {"text": "hello", "tts_config": TTS})
    assert (answer, json.loads(told)["cause"]) == (code, cause)
    assert len(provider.spoken) == len(faults)


@pytest.mark.parametrize("fault", [audio(9, 0.01, breaks_after=3), audio(9, stalls_after=3)], ids=["breaks", "stalls"])
def test_audio_that_breaks_off_cuts_the_body(subject: Gateway, provider: MockProvider, fault: Behaviour) -> None:
    provider.next.append(fault)
    with pytest.raises(http.client.IncompleteRead) as cut:
        subject.http("POST", "/speak", {"text": "hello", "tts_config": TTS})
    assert cut.value.partial == reply_audio("hello", 3)


def test_speech_over_http_counts_as_a_speak_does(provider: MockProvider) -> None:
    # Whole, never begun, and cut.
    provider.next += [audio(3), status(500), status(500), audio(9, 0.01, breaks_after=2)]
    with gateway(provider.url) as subject:
        for _ in range(3):
            with contextlib.suppress(http.client.IncompleteRead):
                subject.http("POST", "/speak", {"text": "hello", "tts_config": TTS})
        subject.http("POST", "/speak", {"text": "", "tts_config": TTS})
        eventually(lambda: subject.metric('voice_speaks_total{outcome="failed"}') == 2)
        assert subject.metric('voice_speaks_total{outcome="complete"}') == 1
        assert subject.metric('voice_speaks_total{outcome="dropped"}') == 0
        assert subject.metric('voice_audio_bytes_total{direction="out"}') == 5 * BLOCK_BYTES


def test_a_client_that_leaves_ends_its_request(subject: Gateway, provider: MockProvider) -> None:
    provider.next.append(audio(500, 0.01))
    body = json.dumps({"text": "hello", "tts_config": TTS})
    with socket.create_connection(("127.0.0.1", subject.port), 5) as client:
        client.sendall(f"POST /speak HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200")
    eventually(lambda: provider.spoken[0].left_at is not None, 1)


def test_speech_needs_the_token_and_the_rest_does_not(provider: MockProvider) -> None:
    with gateway(provider.url, AUTH_TOKEN="let me in", WORKER_THREADS="1") as subject:
        request = {"text": "hello", "tts_config": TTS}
        for headers in ({}, {"Authorization": "Bearer let me"}, {"Authorization": "let me in"}):
            code, _, body = subject.http("POST", "/speak", request, **headers)
            assert (code, json.loads(body)["cause"]) == (401, "auth")
        assert subject.http("POST", "/speak", request, Authorization="Bearer let me in")[0] == 200
        assert [subject.http("GET", path)[0] for path in ("/", "/voices", "/metrics")] == [200, 200, 200]
        assert subject.metric('voice_refused_total{cause="auth"}') == 3
        with subject.connected(additional_headers={"Authorization": "Bearer let me in"}):
            assert subject.metric("voice_sessions") == 1
