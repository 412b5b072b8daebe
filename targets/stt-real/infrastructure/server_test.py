"""Tests a target of this folder over real sockets, with real speech: `python server_test.py TARGET`, in the target's folder.

Only Python's standard library and what the target itself needs. The last line counts.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any, ClassVar

from record import Recording
from scenarios import SCENARIOS, Session, final_text

HERE = Path(__file__).parent
CORPUS = HERE.parent / "corpus"
# Two voices that say different things.
CLIPS = ("029-awb", "104-en-gb-scotland")
DIALECTS = {
    "moonshine": "deepgram",
    "pocketsphinx": "vosk",
    "whisperlive": "whisperlive",
    "whisperlivekit": "deepgram",
    "wyoming-whisper": "wyoming",
}
SCENARIO_OF = {"whisperlive": "patient", "wyoming": "turn"}
START_S = 60.0
END_S = 7.0


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def command() -> list[str]:
    """What the manifest runs."""
    import tomllib

    run = tomllib.loads(Path("target.toml").read_text())["run"]
    os.environ |= run.get("env", {})
    program = str(Path(run["command"][0]).absolute())
    return [program, *run["command"][1:]]


def command_path() -> list[str]:
    """Where the target's own modules are."""
    command()
    return os.environ.get("PYTHONPATH", "").split(":")


class Program:
    """The target, running."""

    def __init__(self, **environment: str) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            command(),
            env=os.environ | {"PORT": str(self.port), "WORKER_THREADS": "1"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def start_line(self) -> dict[str, Any]:
        """Its first line."""
        assert self.process.stdout
        line: dict[str, Any] = json.loads(self.process.stdout.readline())
        return line

    def until_it_listens(self) -> None:
        """Waits until connections are accepted."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"nothing listens after {START_S:.0f} s")

    def end(self) -> int:
        """SIGTERM to its group, as a trial does; the exit code."""
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            return self.process.wait(END_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends what is left."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()
            if self.process.stdout:
                self.process.stdout.close()


def words_of(text: str) -> list[str]:
    """Words in lower case, letters and apostrophes only."""
    return "".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split()


def share_heard(reference: list[str], heard: list[str]) -> float:
    """The share of the reference's words that were heard, whatever their order."""
    left = list(heard)
    hits = 0
    for word in reference:
        if word in left:
            left.remove(word)
            hits += 1
    return hits / len(reference)


def sentence(clip: str) -> list[str]:
    """What is said in a clip."""
    index = json.loads((CORPUS / "index.json").read_text())
    return next(entry["words"] for entry in index["clips"] if entry["clip"] == clip)


class Starts(unittest.TestCase):
    """What happens before the server serves."""

    def test_a_bad_variable_is_one_line_and_exit_code_2(self) -> None:
        for name, value in (("PORT", "zero"), ("PORT", "70000"), ("WORKER_THREADS", "0"), ("WORKER_THREADS", " 1")):
            with self.subTest(name=name, value=value):
                done = subprocess.run(
                    command(), env=os.environ | {name: value}, capture_output=True, text=True, timeout=30, check=False
                )
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(name, done.stderr)


class Serves(unittest.TestCase):
    """One server for all of these."""

    dialect: ClassVar[str]
    program: ClassVar[Program]
    line: ClassVar[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.dialect = DIALECTS[Path.cwd().name]
        cls.program = Program()
        cls.line = cls.program.start_line()
        cls.program.until_it_listens()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.program.kill()

    def sessions(self, *clips: str, scenario_name: str = "") -> list[str]:
        """The final text of a session for each clip, all at once."""

        async def together() -> list[str]:
            recordings = [Recording() for _ in clips]
            scenario = SCENARIOS[self.dialect][scenario_name or SCENARIO_OF.get(self.dialect, "captions")]
            await asyncio.gather(
                *(
                    scenario(Session(recording, self.program.port, [CORPUS / "clips" / f"{clip}.wav"]))
                    for recording, clip in zip(recordings, clips, strict=True)
                )
            )
            return [final_text(self.dialect, recording) for recording in recordings]

        return asyncio.run(together())

    def test_the_start_line_has_versions(self) -> None:
        self.assertIn("CPython", self.line["runtime"])
        self.assertTrue(all(isinstance(version, str) for version in self.line["libraries"].values()))

    def test_the_words_of_a_clip_come_back(self) -> None:
        (text,) = self.sessions(CLIPS[0])
        # The weakest of these recognisers hears four of seven words; garbage has at most a "the".
        self.assertGreaterEqual(share_heard(sentence(CLIPS[0]), words_of(text)), 0.5, text)

    def test_the_end_brings_the_words_that_are_open(self) -> None:
        if self.dialect == "whisperlive":
            self.skipTest("WhisperLive drops them")
        (text,) = self.sessions(CLIPS[0], scenario_name="" if self.dialect == "wyoming" else "open-end")
        self.assertGreaterEqual(share_heard(sentence(CLIPS[0]), words_of(text)), 0.5, text)

    def test_two_sessions_at_once_hear_their_own(self) -> None:
        texts = self.sessions(*CLIPS)
        for own, other in (CLIPS, CLIPS[::-1]):
            heard = words_of(texts[CLIPS.index(own)])
            self.assertGreater(share_heard(sentence(own), heard), share_heard(sentence(other), heard), texts)


class Ends(unittest.TestCase):
    """SIGTERM."""

    def test_sigterm_ends_it_in_time_and_leaves_no_process(self) -> None:
        program = Program()
        try:
            program.start_line()
            program.until_it_listens()
            # uvicorn ends in order, and then by the signal itself.
            self.assertIn(program.end(), (0, -signal.SIGTERM))
        finally:
            program.kill()
        # Python's own helper of spawned processes ends when its parent's pipe does: a moment later, on a busy machine more.
        deadline = time.monotonic() + 15.0
        with self.assertRaises(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(program.process.pid, 0)
                time.sleep(0.05)


def main() -> int:
    target = Path.cwd().name
    sys.path[:0] = command_path()
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromModule(sys.modules[__name__])
    if Path("tests").is_dir():
        suite.addTests(loader.discover("tests"))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    bad = len(result.failures) + len(result.errors)
    print(f"{target}: {result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
