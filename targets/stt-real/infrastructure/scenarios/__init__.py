"""What record.py does with a server, by dialect: each scenario asks one question of the wire."""

import json
from collections.abc import Awaitable, Callable
from types import ModuleType

from record import Recording

from . import deepgram, vosk, whisperlive, wyoming
from .session import Refused, Session

Scenario = Callable[[Session], Awaitable[None]]


def _of(module: ModuleType) -> dict[str, Scenario]:
    """The scenarios of a dialect by name: those functions whose name begins with the dialect's."""
    prefix = f"{module.__name__.rpartition('.')[2]}_"
    return {
        name.removeprefix(prefix).replace("_", "-"): _unless_refused(value)
        for name, value in vars(module).items()
        if name.startswith(prefix)
    }


def _unless_refused(scenario: Scenario) -> Scenario:
    async def run(session: Session) -> None:
        try:
            await scenario(session)
        except Refused:
            return

    run.__doc__ = scenario.__doc__
    return run


def final_text(dialect: str, recording: Recording) -> str:
    """All final words of a recorded session."""
    messages = [line["text"] for line in recording.lines if line["dir"] == "s" and "text" in line]
    if dialect == "wyoming":
        return " ".join(json.loads(text.partition("\n")[2])["text"] for text in messages if '"transcript"' in text)
    parsed = [json.loads(text) for text in messages]
    if dialect == "vosk":
        return " ".join(message.get("text", "") for message in parsed)
    if dialect == "deepgram":
        finals = [message for message in parsed if message["type"] == "Results" and message["is_final"]]
        return " ".join(message["channel"]["alternatives"][0]["transcript"] for message in finals)
    # The open segment counts as well: without speech after it, WhisperLive seldom completes it.
    segments = [message["segments"] for message in parsed if "segments" in message]
    return " ".join(segment["text"] for segment in segments[-1]) if segments else ""


SCENARIOS = {
    "deepgram": _of(deepgram),
    "vosk": _of(vosk),
    "whisperlive": _of(whisperlive),
    "wyoming": _of(wyoming),
}
