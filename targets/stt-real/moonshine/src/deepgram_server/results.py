"""From Moonshine's lines to Deepgram's messages, without I/O.

A line is what Moonshine has from one start of speech to the next pause. It changes until it is complete. Times of words are
not known, so `words` is empty.
"""

from dataclasses import dataclass
from typing import Any

# A line may begin this long before the audio in which it is noticed: Moonshine looks back for the onset. Silence is reported
# no later than this, so that no line begins before it.
LOOK_BACK_S = 1.5
# Silence is reported in pieces of at least this length.
SILENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line, times in seconds of the session's audio."""

    text: str
    start_s: float
    end_s: float
    is_complete: bool


class Results:
    """The messages of one session. What is final is said once, and in order."""

    def __init__(self, request_id: str, model: str, *, interim: bool) -> None:
        self._metadata = {
            "request_id": request_id,
            "model_info": {"name": model, "version": model, "arch": "moonshine"},
            "model_uuid": "",
        }
        self._request_id = request_id
        self._model = model
        self._interim = interim
        # The end of what is final.
        self.cursor_s = 0.0
        self._last_interim = ""

    def update(self, lines: list[Line], heard_s: float) -> list[dict[str, Any]]:
        """The messages for the lines that begin at the final cursor or later, after `heard_s` of audio."""
        messages = []
        is_open = False
        for line in lines:
            if line.is_complete:
                messages.append(self._result(line.start_s, line.end_s, line.text, is_final=True, speech_final=True))
                self.cursor_s = line.end_s
                self._last_interim = ""
                continue
            is_open = True
            if self._interim and line.text not in ("", self._last_interim):
                messages.append(self._result(line.start_s, line.end_s, line.text, is_final=False, speech_final=False))
                self._last_interim = line.text
        silent_until_s = heard_s - LOOK_BACK_S
        if not is_open and silent_until_s - self.cursor_s >= SILENCE_S:
            messages.append(self._result(self.cursor_s, silent_until_s, "", is_final=True, speech_final=False))
            self.cursor_s = silent_until_s
        return messages

    def summary(self, heard_s: float, created: str) -> dict[str, Any]:
        """The last message of a session, made at `created` (UTC, ISO 8601)."""
        return {
            "type": "Metadata",
            "transaction_key": "deprecated",
            "request_id": self._request_id,
            "sha256": "",
            "created": created,
            "duration": round(heard_s, 3),
            "channels": 1,
            "models": [self._model],
        }

    def _result(self, start_s: float, end_s: float, text: str, *, is_final: bool, speech_final: bool) -> dict[str, Any]:
        return {
            "type": "Results",
            "channel_index": [0, 1],
            "duration": round(end_s - start_s, 3),
            "start": round(start_s, 3),
            "is_final": is_final,
            "speech_final": speech_final,
            "channel": {"alternatives": [{"transcript": text, "confidence": 0.0, "words": []}]},
            "metadata": self._metadata,
            "from_finalize": False,
        }
