"""One session's recognition: the endpointer says where speech is, the decoder says what was said."""

import json
from typing import Any, ClassVar

from pocketsphinx import Decoder, Endpointer

SAMPLE_RATE = 16_000
BYTES_PER_S = SAMPLE_RATE * 2
# pocketsphinx counts its results in frames of 10 ms.
FRAMES_PER_S = 100
# Silence, sentence borders and noises are segments as well, in angle brackets or in ++.
_NO_WORDS = ("<", "[", "+")


def make_decoder() -> Decoder:
    """A decoder with the model en-us. The second pass (fwdflat) is off: it would take its time after each end of speech."""
    return Decoder(samprate=float(SAMPLE_RATE), fwdflat=False, loglevel="FATAL")


class Recogniser:
    """Takes audio in pieces of any length, and has an answer for each."""

    NOTHING: ClassVar[str] = json.dumps({"text": ""})

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        # What it has learnt of the speaker's channel, which the next session must not have.
        self._cepstral_mean = decoder.get_cmn(False)
        self._endpointer = Endpointer(sample_rate=SAMPLE_RATE)
        self._pending = b""
        self._is_open = False
        self._utterance_start_s = 0.0

    def accept(self, pcm: bytes) -> str:
        """The result of an utterance that ended within `pcm`, or the partial text."""
        self._pending += pcm
        size = self._endpointer.frame_bytes
        result = None
        while len(self._pending) >= size:
            frame, self._pending = self._pending[:size], self._pending[size:]
            result = self._hear(self._endpointer.process(frame)) or result
        if result is not None:
            return result
        hypothesis = self._decoder.hyp() if self._is_open else None
        return json.dumps({"partial": _words_of(hypothesis.hypstr) if hypothesis else ""})

    def finish(self) -> str:
        """The result of what is still open."""
        if self._endpointer.in_speech:
            # The endpointer takes no empty frame; a sample of silence does no harm.
            rest = self._endpointer.end_stream(self._pending or bytes(2))
            if rest and self._is_open:
                self._decoder.process_raw(rest)
        self._pending = b""
        return self._end() if self._is_open else self.NOTHING

    def release(self) -> Decoder:
        """The decoder, as it was."""
        if self._is_open:
            self._decoder.end_utt()
            self._is_open = False
        self._decoder.set_cmn(self._cepstral_mean)
        return self._decoder

    def _hear(self, speech: bytes | None) -> str | None:
        """Decodes a frame that the endpointer took for speech; the result if it was the last one."""
        if speech is None:
            return None
        if not self._is_open:
            # The endpointer gives back what it held until it was sure, so this is where that begins.
            self._utterance_start_s = self._endpointer.speech_start
            self._decoder.start_utt()
            self._is_open = True
        self._decoder.process_raw(speech)
        return None if self._endpointer.in_speech else self._end()

    def _end(self) -> str:
        self._decoder.end_utt()
        self._is_open = False
        words = [
            {
                "conf": round(min(1.0, segment.prob), 6),
                "start": round(self._utterance_start_s + segment.start_frame / FRAMES_PER_S, 2),
                "end": round(self._utterance_start_s + (segment.end_frame + 1) / FRAMES_PER_S, 2),
                "word": _spelling(segment.word),
            }
            for segment in self._decoder.seg()
            if not segment.word.startswith(_NO_WORDS)
        ]
        # As Vosk has it: no `result` if there are no words.
        answer: dict[str, Any] = {"result": words} if words else {}
        return json.dumps(answer | {"text": " ".join(word["word"] for word in words)})


def _words_of(text: str) -> str:
    return " ".join(_spelling(word) for word in text.split() if not word.startswith(_NO_WORDS))


def _spelling(word: str) -> str:
    """A word without the number of its pronunciation: `was(2)` is `was`."""
    return word.partition("(")[0]
