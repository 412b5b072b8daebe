"""Moonshine's C interface, for the one thread that owns a transcriber.

The package's own `Stream` copies all audio of a session into Python lists at each update, so it is not used.
"""

import ctypes
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from moonshine_voice.errors import check_error
from moonshine_voice.moonshine_api import ModelArch, TranscriptC
from moonshine_voice.transcriber import Transcriber

from .options import SAMPLE_RATE
from .results import Line

MODEL = "moonshine-tiny-en"
# Decodes what has come since the library's own last update, even if that was a moment ago.
_FORCE_UPDATE = 1
_OPTIONS = {"return_audio_data": "false", "identify_speakers": "false"}


def make_transcriber() -> Transcriber:
    """A transcriber with the model that the package holds."""
    package = find_spec("moonshine_voice")
    if package is None or package.origin is None:
        raise RuntimeError("the package moonshine-voice is missing: run build.sh")
    return Transcriber(str(Path(package.origin).parent / "assets" / "tiny-en"), ModelArch.TINY, options=_OPTIONS)


class Stream:
    """One session's audio and lines."""

    def __init__(self, transcriber: Transcriber) -> None:
        self._lib = transcriber._lib  # noqa: SLF001  # the package has no other door to its C interface
        self._transcriber = transcriber._handle  # noqa: SLF001
        self._handle = self._lib.moonshine_create_stream(self._transcriber, 0)
        check_error(self._handle)
        check_error(self._lib.moonshine_start_stream(self._transcriber, self._handle))
        self._finished: set[int] = set()

    def hear(self, pcm: bytes) -> list[Line]:
        """Takes audio; returns the lines that are not complete, or became so with it."""
        samples = np.frombuffer(pcm, np.int16).astype(np.float32) / 32_768
        pointer = samples.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        check_error(
            self._lib.moonshine_transcribe_add_audio_to_stream(
                self._transcriber, self._handle, pointer, len(samples), SAMPLE_RATE, 0
            )
        )
        return self._lines()

    def finish(self) -> list[Line]:
        """Completes the lines that are open, and frees the stream."""
        check_error(self._lib.moonshine_stop_stream(self._transcriber, self._handle))
        lines = self._lines(_FORCE_UPDATE)
        self.free()
        return [Line(line.text, line.start_s, line.end_s, is_complete=True) for line in lines]

    def free(self) -> None:
        """Frees the stream, once."""
        if self._handle is not None:
            self._lib.moonshine_free_stream(self._transcriber, self._handle)
            self._handle = None

    def _lines(self, flags: int = 0) -> list[Line]:
        transcript = ctypes.POINTER(TranscriptC)()
        check_error(self._lib.moonshine_transcribe_stream(self._transcriber, self._handle, flags, ctypes.byref(transcript)))
        lines = []
        for index in range(transcript.contents.line_count):
            line = transcript.contents.lines[index]
            if line.id in self._finished:
                continue
            if line.is_complete:
                self._finished.add(line.id)
            text = ctypes.string_at(line.text).decode(errors="replace") if line.text else ""
            start_s = float(line.start_time)
            lines.append(Line(text, start_s, start_s + float(line.duration), bool(line.is_complete)))
        return lines
