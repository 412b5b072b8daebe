"""Which messages the lines of a session become."""

import unittest
from typing import Any

from deepgram_server.options import Options, Refused
from deepgram_server.results import LOOK_BACK_S, Line, Results


def text_of(message: dict[str, Any]) -> str:
    return str(message["channel"]["alternatives"][0]["transcript"])


class Query(unittest.TestCase):
    def test_what_is_served(self) -> None:
        query = "model=nova&encoding=linear16&sample_rate=16000&channels=1&interim_results=true&endpointing=300"
        self.assertTrue(Options.from_query(query).interim_results)
        self.assertFalse(Options.from_query("encoding=linear16").interim_results)

    def test_what_is_not_is_named(self) -> None:
        for query, named in (
            ("encoding=opus", "encoding"),
            ("sample_rate=16000", "encoding"),
            ("encoding=linear16&sample_rate=8000", "sample_rate"),
            ("encoding=linear16&channels=2", "channels"),
            ("encoding=linear16&interim_results=yes", "interim_results"),
            ("encoding=linear16&interim_results=", "interim_results"),
        ):
            with self.subTest(query=query), self.assertRaisesRegex(Refused, named):
                Options.from_query(query)


class Messages(unittest.TestCase):
    def setUp(self) -> None:
        self.results = Results("id", "model", interim=True)

    def test_an_open_line_is_interim_and_said_once_per_text(self) -> None:
        line = Line("So far", 0.4, 1.0, is_complete=False)
        (message,) = self.results.update([line], 1.0)
        self.assertEqual((message["start"], message["duration"], message["is_final"]), (0.4, 0.6, False))
        self.assertEqual(self.results.update([line], 1.5), [])

    def test_a_complete_line_is_final_and_moves_the_cursor(self) -> None:
        (message,) = self.results.update([Line("All of it.", 0.4, 2.0, is_complete=True)], 2.5)
        self.assertEqual((text_of(message), message["is_final"], message["speech_final"]), ("All of it.", True, True))
        self.assertEqual(self.results.cursor_s, 2.0)

    def test_without_interim_results_only_finals_come(self) -> None:
        results = Results("id", "model", interim=False)
        self.assertEqual(results.update([Line("So far", 0.4, 1.0, is_complete=False)], 1.0), [])

    def test_silence_moves_the_cursor_but_stays_behind_what_may_still_become_a_line(self) -> None:
        heard_s, cursor_s, spans = 0.0, 0.0, []
        while heard_s < 10.0:
            heard_s += 0.5
            for message in self.results.update([], heard_s):
                self.assertEqual(text_of(message), "")
                self.assertTrue(message["is_final"])
                self.assertEqual(message["start"], cursor_s)
                cursor_s += message["duration"]
                self.assertLessEqual(cursor_s, heard_s - LOOK_BACK_S)
                spans.append(message["duration"])
        self.assertGreater(cursor_s, 7.0)

    def test_an_open_line_holds_the_cursor(self) -> None:
        self.results.update([Line("A long sentence", 0.4, 9.0, is_complete=False)], 9.0)
        self.assertEqual(self.results.cursor_s, 0.0)


if __name__ == "__main__":
    unittest.main()
