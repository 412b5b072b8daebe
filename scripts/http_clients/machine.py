"""Servers and tools as processes on one core each, with their CPU time."""

import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import time
import tomllib
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
READY_S = 60
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """What the user is shown, in one line."""


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def pinned(core, command):
    return ["taskset", "--cpu-list", str(core), *command]


def processes_of(pid):
    """The process and all below it."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += processes_of(int(child))
    return found


def cpu_us_of(pid):
    """User and system time of the process and of all below it, those included that have ended."""
    ticks = 0
    for each in processes_of(pid):
        fields = pathlib.Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks * 1_000_000 // TICKS_PER_S


def busy_us(cores):
    """The time that these cores have worked, for anybody."""
    ticks = 0
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in {f"cpu{core}" for core in cores}:
            # User, nice, system; then, after idle and waiting: interrupts, soft interrupts, and what the host took.
            ticks += sum(int(field) for field in fields[:3] + fields[5:8])
    return ticks * 1_000_000 // TICKS_PER_S


class Server:
    """A target of this repository on its core, ready to serve."""

    def __init__(self, target, core, log, **variables):
        self.folder = ROOT / "targets/http" / target
        manifest = self.folder / "target.toml"
        if not manifest.is_file():
            raise Failure(f"there is no target {target}")
        self.manifest = tomllib.loads(manifest.read_text())
        run = self.manifest["run"]
        self._stop_signal = signal.Signals["SIG" + run.get("stop_signal", "TERM")]
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        if "build" in self.manifest:
            with open(log.with_suffix(".build"), "w") as output:
                built = subprocess.run(self.manifest["build"]["command"], cwd=self.folder, stdout=output, stderr=output)
            if built.returncode != 0:
                raise Failure(f"the build of {target} failed; {output.name} shows why")
        command = run["command"]
        if "/" in command[0]:
            command = [str(self.folder / command[0]), *command[1:]]
        env = {**os.environ, "PORT": str(self.port), "WORKER_THREADS": "1", **run.get("env", {}), **variables}
        if self.manifest.get("h2_port"):
            env["H2_PORT"] = str(free_port())
        self._log = open(log, "w+")
        self.process = subprocess.Popen(
            pinned(core, command), cwd=self.folder, env=env, stdout=self._log, stderr=subprocess.STDOUT
        )
        self._wait(target)

    def _wait(self, target):
        deadline = time.monotonic() + READY_S
        while True:
            try:
                urllib.request.urlopen(self.url + "healthz", timeout=1).read()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.stop()
                    raise Failure(f"{target} does not get ready; {self._log.name} has its output") from None
                time.sleep(0.01)

    def start_line(self):
        """What it says of its versions, where it does."""
        with open(self._log.name) as log:
            first = log.readline()
        try:
            return json.loads(first)
        except ValueError:
            return None

    def cpu_us(self):
        return cpu_us_of(self.process.pid)

    def requests(self):
        """How many it has counted; nothing where it does not count."""
        try:
            text = urllib.request.urlopen(self.url + "metrics", timeout=5).read().decode()
        except OSError:
            return None
        for line in text.splitlines():
            if line.startswith("http_requests_total "):
                return int(float(line.split()[1]))
        return None

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(self._stop_signal)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()


class Ran:
    """A tool that has ended."""

    def __init__(self, command, core, output, env=None):
        line = " ".join(shlex.quote(word) for word in command)
        began = time.monotonic()
        with open(output, "w") as file:
            file.write(f"$ {line}\n")
            file.flush()
            process = subprocess.Popen(
                pinned(core, command), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}
            )
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                # Somebody has ended this script.
                process.kill()
                process.wait()
                raise
        self.wall_s = time.monotonic() - began
        self.cpu_us = round((usage.ru_utime + usage.ru_stime) * 1e6)
        self.text = pathlib.Path(output).read_text().partition("\n")[2]
        self.code = os.waitstatus_to_exitcode(status)
        # It has been waited for.
        process.returncode = self.code

    def require(self, name, codes=(0,)):
        if self.code not in codes:
            last = self.text.strip().splitlines()[-1:] or [""]
            raise Failure(f"{name} ended with {self.code}: {last[0]}")
