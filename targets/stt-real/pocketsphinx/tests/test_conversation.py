"""What a client may say in text, and which answer a message of audio gets."""

import json
import unittest
from dataclasses import dataclass

from vosk_server.conversation import BadMessage, check_config
from vosk_server.recogniser import Recogniser


class Config(unittest.TestCase):
    def test_a_config_is_read(self) -> None:
        check_config('{"config":{"sample_rate":16000,"words":true}}')
        check_config('{"config":{}}')

    def test_what_cannot_be_done_is_named(self) -> None:
        for text, named in (
            ("hello", "text"),
            ('{"eof":1}', "config"),
            ("[1]", "config"),
            ('{"config":{"sample_rate":8000}}', "sample_rate"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(BadMessage, named):
                check_config(text)


@dataclass
class Segment:
    word: str
    start_frame: int
    end_frame: int
    prob: float


@dataclass
class Hypothesis:
    hypstr: str


class FakeDecoder:
    """Hears the words `was(2) here` between silences, 100 ms each."""

    def __init__(self) -> None:
        self.cmn = "learnt before"
        self.heard = b""

    def get_cmn(self, update: bool) -> str:
        return self.cmn

    def set_cmn(self, cmn: str) -> None:
        self.cmn = cmn

    def start_utt(self) -> None:
        self.heard = b""

    def process_raw(self, pcm: bytes) -> None:
        self.heard += pcm
        self.cmn = "of this session"

    def end_utt(self) -> None:
        pass

    def hyp(self) -> Hypothesis:
        return Hypothesis("<s> was(2) here")

    def seg(self) -> list[Segment]:
        words = ("<s>", "was(2)", "[NOISE]", "here", "</s>")
        return [Segment(word, 10 * at, 10 * at + 9, 1.2) for at, word in enumerate(words)]


class FakeEndpointer:
    """Frames of four bytes: `S` is speech, all else silence. Speech starts at 7.5 s."""

    frame_bytes = 4
    speech_start = 7.5

    def __init__(self) -> None:
        self.in_speech = False

    def process(self, frame: bytes) -> bytes | None:
        was_in_speech, self.in_speech = self.in_speech, frame == b"SSSS"
        return frame if was_in_speech or self.in_speech else None

    def end_stream(self, rest: bytes) -> bytes:
        if not rest:
            raise IndexError("out of bounds")  # as the library does
        self.in_speech = False
        return rest


class Answers(unittest.TestCase):
    def setUp(self) -> None:
        self.decoder = FakeDecoder()
        self.recogniser = Recogniser(self.decoder)
        self.recogniser._endpointer = FakeEndpointer()

    def test_silence_is_an_empty_partial(self) -> None:
        self.assertEqual(self.recogniser.accept(b"...."), '{"partial": ""}')

    def test_pieces_that_are_no_whole_frames_wait_for_the_rest(self) -> None:
        self.assertEqual(json.loads(self.recogniser.accept(b"SSS")), {"partial": ""})
        self.assertEqual(json.loads(self.recogniser.accept(b"S")), {"partial": "was here"})
        self.assertEqual(self.decoder.heard, b"SSSS")

    def test_a_result_has_words_at_their_times_in_the_session(self) -> None:
        self.recogniser.accept(b"SSSS")
        result = json.loads(self.recogniser.accept(b"...."))
        self.assertEqual(result["text"], "was here")
        self.assertEqual(result["result"][0], {"conf": 1.0, "start": 7.6, "end": 7.7, "word": "was"})
        self.assertEqual(result["result"][1]["start"], 7.8)

    def test_the_end_of_an_utterance_within_a_message_is_its_answer(self) -> None:
        answer = json.loads(self.recogniser.accept(b"SSSS....SSSS"))
        self.assertEqual(answer["text"], "was here")
        self.assertEqual(json.loads(self.recogniser.finish())["text"], "was here")

    def test_the_end_without_speech_has_no_words(self) -> None:
        self.recogniser.accept(b"....")
        self.assertEqual(self.recogniser.finish(), '{"text": ""}')

    def test_a_decoder_is_given_back_as_it_was(self) -> None:
        self.recogniser.accept(b"SSSS")
        self.recogniser.release()
        self.assertEqual(self.decoder.cmn, "learnt before")


if __name__ == "__main__":
    unittest.main()
