"""The voices that may be asked for: the list of the provider that has one, kept for a while."""

import asyncio
import json
from typing import Any, Final

import aiohttp
from yarl import URL

from gateway_common.variables import BaseUrl

from .config import Config
from .kept import KEPT_BYTES_MAX, Kept
from .messages import ErrorKind
from .providers import voices_request
from .speech import BROKEN, SpeechError

_KEPT_S: Final = 60.0
# A provider tells more of a voice than is handed on.
_ANSWER_BYTES_MAX: Final = 8 * KEPT_BYTES_MAX


class Voices:
    """Asks once a minute, however many ask here; at worst each worker does."""

    def __init__(self, config: Config, http: aiohttp.ClientSession, kept: Kept) -> None:
        self._config = config
        self._http = http
        self._kept = kept
        self._asking = asyncio.Lock()

    async def body(self, base: BaseUrl) -> bytes:
        """The answer's JSON; raises `SpeechError`."""
        async with self._asking:
            body = self._kept.get()
            if body is None:
                body = json.dumps({"elevenlabs": await self._ask(base)}).encode()
                if len(body) > KEPT_BYTES_MAX:
                    raise SpeechError(ErrorKind.TTS_FAILED, "the provider's list is too long")
                self._kept.put(body, _KEPT_S)
            return body

    async def _ask(self, base: BaseUrl) -> list[dict[str, str]]:
        url, headers = voices_request(base, self._config.provider_key)
        try:
            async with (
                asyncio.timeout(self._config.tts_first_s),
                self._http.get(URL(url, encoded=True), headers=headers, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise SpeechError(ErrorKind.TTS_FAILED, f"the provider answered {response.status}")
                answer = await response.content.read(_ANSWER_BYTES_MAX)
                while chunk := await response.content.read(_ANSWER_BYTES_MAX):
                    answer += chunk
                    if len(answer) > _ANSWER_BYTES_MAX:
                        raise SpeechError(ErrorKind.TTS_FAILED, "the provider's list is too long")
            return [_voice(voice) for voice in json.loads(answer)["voices"]]
        except TimeoutError:
            raise SpeechError(ErrorKind.TTS_TIMEOUT, "the provider did not answer in time") from None
        except BROKEN as error:
            raise SpeechError(ErrorKind.TTS_FAILED, f"the connection broke: {type(error).__name__}") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise SpeechError(ErrorKind.TTS_FAILED, "the provider's list cannot be read") from None


def _voice(voice: dict[str, Any]) -> dict[str, str]:
    labels = voice.get("labels") or {}

    def text(value: Any) -> str:
        return value if isinstance(value, str) else ""

    return {
        "id": str(voice["voice_id"]),
        "name": text(voice.get("name")),
        "language": text(labels.get("language")),
        "gender": text(labels.get("gender")),
        "accent": text(labels.get("accent")),
        "sample": text(voice.get("preview_url")),
    }
