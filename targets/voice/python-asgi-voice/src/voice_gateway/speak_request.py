"""`POST /speak`: its body, and its audio as it arrives."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from fastapi import Request, Response

from .fields import Fields, FieldsError, NotJsonError
from .messages import TEXT_BYTES_MAX, TTS_SAMPLE_RATE, RejectedError, TtsConfig, tts_config
from .shared import SPEAKS_AT, Counter, SpeakOutcome
from .speech import Speech, SpeechError

if TYPE_CHECKING:
    from .service import Service

# The longest text, were each of its bytes escaped, and its configuration.
_BODY_BYTES_MAX: Final = 1 << 20


class BadRequestError(Exception):
    """A request that is not forwarded."""

    def __init__(self, status: int, cause: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.cause = cause


class CutError(Exception):
    """The audio broke off: the server closes the connection, without the end of the body."""


def _is_no_cut(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], CutError)


# The server would log it as a fault of this program.
logging.getLogger("uvicorn.error").addFilter(_is_no_cut)


async def read_request(request: Request) -> tuple[str, TtsConfig]:
    """The text, and how it is to be spoken; raises `BadRequestError`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_BYTES_MAX:
            raise BadRequestError(413, "too_large", f"the body is over {_BODY_BYTES_MAX} bytes")
    try:
        fields = Fields.parse(body.decode())
        text, tts = fields.text("text"), tts_config(fields.object("tts_config"))
        size_bytes = len(text.encode())
    except NotJsonError as error:
        raise BadRequestError(400, "bad_json", str(error)) from None
    except UnicodeDecodeError:
        raise BadRequestError(400, "bad_json", "not UTF-8") from None
    except UnicodeEncodeError:
        raise BadRequestError(400, "bad_field", "text: has half of a surrogate pair") from None
    except (FieldsError, RejectedError) as error:
        raise BadRequestError(400, "bad_field", str(error)) from None
    if not text:
        raise BadRequestError(400, "empty_text", "text: is empty")
    if size_bytes > TEXT_BYTES_MAX:
        raise BadRequestError(413, "too_large", f"text: over {TEXT_BYTES_MAX} bytes")
    return text, tts


async def open_speech(service: "Service", text: str, tts: TtsConfig) -> Speech:
    """A speech that has begun; one that does not counts here. Raises `SpeechError`."""
    try:
        return await service.speaker.open(service.provider_url(service.next_turn()), tts, text)
    except SpeechError:
        service.book.add(SPEAKS_AT[SpeakOutcome.FAILED])
        raise
    except asyncio.CancelledError:
        service.book.add(SPEAKS_AT[SpeakOutcome.DROPPED])
        raise


class SpokenAudio(Response):
    """The audio of a speech, piece by piece. When the client goes, the speech ends."""

    media_type = "audio/pcm"

    def __init__(self, speech: Speech, service: "Service") -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["x-audio-format"] = "linear16"
        self.headers["x-sample-rate"] = str(TTS_SAMPLE_RATE)
        self.headers["x-provider-ms"] = f"{speech.provider_ms:.3f}"
        self._speech = speech
        self._service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        task = asyncio.current_task()
        assert task is not None

        def leave(_: object) -> None:
            task.cancel()

        gone = asyncio.ensure_future(receive())
        gone.add_done_callback(leave)
        outcome = SpeakOutcome.DROPPED
        try:
            outcome = await self._stream(send)
        except asyncio.CancelledError:
            # Either the client has gone, or the gateway ends.
            if not gone.done():
                raise CutError from None
            task.uncancel()
        finally:
            self._speech.close()
            self._service.book.add(SPEAKS_AT[outcome])
            gone.remove_done_callback(leave)
            gone.cancel()
        if outcome is SpeakOutcome.FAILED:
            raise CutError

    async def _stream(self, send: Any) -> SpeakOutcome:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while chunk := await self._speech.read():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                self._service.book.add(Counter.AUDIO_OUT_BYTES, len(chunk))
        except SpeechError:
            return SpeakOutcome.FAILED
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return SpeakOutcome.COMPLETE
