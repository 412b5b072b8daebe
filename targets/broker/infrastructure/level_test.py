"""The contract of workload `broker` for finished brokers, level by level. Run in the target's folder, after its build.

    python3 level_test.py

For each level of `target.toml`: the broker starts in an empty folder, answers its protocol, has the settings of the
level, keeps a confirmed message over a kill -9 if the level says so, ends at SIGTERM, and leaves nothing. A line for
each check; the last line counts them.
"""

import contextlib
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from peer import NotReady

END_S = 10
MANIFEST: dict[str, Any] = tomllib.loads(Path("target.toml").read_text())
NAME = MANIFEST["name"]
DIALECT: Any = importlib.import_module(MANIFEST["dialect"])
LEVEL = re.compile(r"([a-z][a-z-]*): confirm (none|memory|cache|disk), deliver (memory|cache|disk)")
# A JVM that ends by a signal reports the signal, as a shell would.
GOOD_ENDS = (0, 128 + signal.SIGTERM)


class Report:
    """Prints and counts the checks."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, name: str, good: bool, why: object = "") -> bool:
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        number = self.passed + self.failed
        print(f"{'ok' if good else 'not ok'} {number} - {name}{'' if good else f': {why}'}", flush=True)
        return good

    def same(self, name: str, expected: object, actual: object) -> bool:
        return self.check(name, expected == actual, f"{actual!r} instead of {expected!r}")


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def spawn(log: IO[bytes] | int, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    """`run.sh` in a session of its own, with little of our environment."""
    ours = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "FIBRIL_SERVER") if name in os.environ}
    return subprocess.Popen(
        ["sh", "run.sh"], env=ours | variables, stdout=subprocess.PIPE, stderr=log, start_new_session=True
    )


def processes_of(session: int) -> list[str]:
    """What runs in a session, by number and name; zombies are gone already."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = entry.read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            if fields[0] != "Z" and int(fields[3]) == session:
                found.append(f"{entry.parent.name} {name}")
    return found


def within(limit_s: float, ask: Callable[[], object]) -> str:
    """Asks until there is an answer. Empty, or why there was none in time."""
    deadline, why = time.monotonic() + limit_s, "not asked"
    while time.monotonic() < deadline:
        try:
            ask()
            return ""
        except (NotReady, OSError) as error:
            why = f"{type(error).__name__} {error}"
        time.sleep(0.05)
    return f"not in {limit_s} s: {why}"


class Broker:
    """The broker as a process, with its log in a file."""

    def __init__(self, level: str, data: Path, log: Path, home: Path, port: int) -> None:
        self.level, self.port, self.log = level, port, log
        given = {"PORT": str(port), "DATA_DIR": str(data), "LEVEL": level, "WORKER_THREADS": "2", "HOME": str(home)}
        with log.open("ab") as file:
            self.process = spawn(file, given)
        self.began = time.monotonic()

    def start_line(self) -> dict[str, Any]:
        assert self.process.stdout
        line: dict[str, Any] = json.loads(self.process.stdout.readline() or b"{}")
        return line

    def ready(self) -> str:
        """Empty when it answers its protocol, or why it does not."""

        def answers() -> None:
            if self.process.poll() is not None:
                raise NotReady(f"it has ended with {self.process.returncode}")
            DIALECT.Client(self.port).socket.close()

        return within(MANIFEST["start_timeout_s"], answers)

    def end(self, how: signal.Signals) -> tuple[float, list[str]]:
        """How long its end takes, and what it leaves."""
        began = time.monotonic()
        self.process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        while (left := processes_of(self.process.pid)) and time.monotonic() < began + END_S:
            time.sleep(0.02)
        return time.monotonic() - began, left

    def kill_all(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@contextlib.contextmanager
def running(level: str, data: Path, log: Path, home: Path, port: int) -> Iterator[Broker]:
    broker = Broker(level, data, log, home, port)
    try:
        yield broker
    finally:
        broker.kill_all()


def once(level: str, port: int, what: str) -> Any:
    with DIALECT.Client(port) as client:
        return getattr(client, what)(level)


def serves(report: Report, level: str, broker: Broker, data: Path) -> None:
    """The checks of a broker that has just started for the first time."""
    line = broker.start_line()
    report.same(f"{level}: the start line names it", (NAME, broker.port), (line.get("target"), line.get("port")))
    report.check(f"{level}: and its version", bool(re.match(r"[a-z]+ .*[0-9]", line.get("runtime", ""))), line)
    why = broker.ready()
    took_s = time.monotonic() - broker.began
    if not report.check(f"{level}: answers {MANIFEST['dialect']} ({took_s:.1f} s)", not why, why):
        return
    # Bound to 127.0.0.1 alone, it would not be reached in a network namespace of its own.
    elsewhere = within(5, lambda: DIALECT.Client(broker.port, "127.0.0.2").socket.close())
    report.check(f"{level}: listens on all addresses", not elsewhere, elsewhere)
    for name, expected, actual in DIALECT.in_force(level, broker.port, data):
        report.same(f"{level}: {name}", expected, actual)


def survives(report: Report, level: str, kept: str, folders: tuple[Path, Path, Path], port: int) -> None:
    """A confirmed message, a kill -9, and a start with the same data."""
    with running(level, *folders, port) as broker:
        why = broker.ready()
        if report.check(f"{level}: starts again", not why, why) and hasattr(DIALECT.Client, "put"):
            why = within(5, lambda: once(level, port, "put"))
            report.check(f"{level}: confirms a message", not why, why)
        _, left = broker.end(signal.SIGKILL)
        report.same(f"{level}: kill -9 leaves no process", [], left)
    with running(level, *folders, port) as broker:
        why = broker.ready()
        report.check(f"{level}: starts after a kill -9", not why, why)
        if not why and kept in ("cache", "disk") and hasattr(DIALECT.Client, "count"):

            def is_there() -> None:
                if (found := once(level, port, "count")) != 1:
                    raise NotReady(f"{found} messages instead of 1")

            why = within(20, is_there)
            report.check(f"{level}: the message survived the kill -9", not why, why)
        end_s, left = broker.end(signal.SIGTERM)
        code = broker.process.poll()
        report.check(f"{level}: ends at SIGTERM ({end_s:.1f} s)", code in GOOD_ENDS, f"exit code {code}")
        report.same(f"{level}: and leaves no process", [], left)


def check_level(report: Report, level: str, kept: str) -> None:
    failed = report.failed
    # Blanks, because a user's folders may have them.
    with tempfile.TemporaryDirectory(prefix="plimsoll broker ") as folder:
        data, home, log = Path(folder, "data"), Path(folder, "home"), Path(folder, "log")
        data.mkdir()
        home.mkdir()
        port = free_port()
        with running(level, data, log, home, port) as broker:
            serves(report, level, broker, data)
            _, left = broker.end(signal.SIGTERM)
            report.same(f"{level}: the first end leaves no process", [], left)
        if report.failed == failed:
            survives(report, level, kept, (data, log, home), port)
        report.same(f"{level}: writes nothing into HOME", [], sorted(path.name for path in home.iterdir()))
        if report.failed > failed:
            print(f"# the end of its log:\n{log.read_text(errors='replace')[-3000:]}")


def check_bad_values(report: Report) -> None:
    with tempfile.TemporaryDirectory() as data:
        good = {"PORT": str(free_port()), "DATA_DIR": data}
        bad = [("PORT", "0"), ("PORT", "1\n2"), ("WORKER_THREADS", "two"), ("LEVEL", "paper"), ("LEVEL", "")]
        bad += [("DATA_DIR", "data"), ("DATA_DIR", f"{data}/none"), ("DATA_DIR", f'{data}/"'), ("DATA_DIR", f"{data}\n")]
        for name, value in bad:
            process = spawn(subprocess.PIPE, good | {name: value})
            out, err = process.communicate(timeout=END_S)
            lines = err.decode().splitlines()
            good_answer = process.returncode == 2 and out == b"" and len(lines) == 1 and lines[0].startswith(f"{name}=")
            report.check(f"{name}={value!r} is refused in one line", good_answer, (process.returncode, out, err))


def main() -> int:
    report = Report()
    check_bad_values(report)
    for line in MANIFEST["levels"]:
        said = LEVEL.fullmatch(line)
        if report.check(f"{line}: is a level", said is not None, "not of the form NAME: confirm …, deliver …") and said:
            check_level(report, said[1], said[2])
    print(f"{NAME}: {report.passed} passed, {report.failed} failed, 0 skipped")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
