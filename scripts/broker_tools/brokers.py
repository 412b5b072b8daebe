"""Brokers of this repository, each in a fresh folder on its own core: start, count, stand still, stop."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import tomllib
import urllib.request

from machine import ROOT, Failure, cpu_us_of, free_port, pinned, processes_of

READY_S = 60
ANSWER_S = 5


class NotHere(Exception):
    """This machine does not have what a run needs. One line, with the remedy."""


class Broker:
    """A broker that is ready."""

    def __init__(self, name, level, core, data, log):
        self.folder = ROOT / "targets/broker" / name
        manifest = self.folder / "target.toml"
        if not manifest.is_file():
            raise Failure(f"there is no target {name}")
        self.manifest = tomllib.loads(manifest.read_text())
        self.name = name
        self.dialect = self.manifest["dialect"]
        if self.dialect not in PROTOCOLS:
            raise Failure(f"{name} speaks {self.dialect}; this comparison knows {', '.join(PROTOCOLS)}")
        self.guarantee = guarantee_of(self.manifest, level)
        self._build(log)
        self.port = free_port()
        self.data = data
        self.data.mkdir(parents=True)
        self._log = open(log, "w")
        command = self.manifest["run"]["command"]
        env = {**os.environ, "PORT": str(self.port), "DATA_DIR": str(data), "LEVEL": level, "WORKER_THREADS": "1"}
        self.process = subprocess.Popen(
            pinned(core, command), cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT
        )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _build(self, log):
        build = self.manifest.get("build", {})
        for need in build.get("needs", []):
            path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
            if shutil.which(need["tool"], path=path) is None:
                raise NotHere(f"{self.name} needs {need['tool']}: {need['install']}")
        if "command" in build:
            output = log.with_suffix(".build")
            with open(output, "w") as file:
                built = subprocess.run(build["command"], cwd=self.folder, stdout=file, stderr=file, check=False)
            if built.returncode != 0:
                raise NotHere(f"the build of {self.name} failed; {output} shows why")

    def _wait(self):
        deadline = time.monotonic() + READY_S
        while True:
            try:
                self.count()
                return
            except (OSError, ValueError):
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise Failure(f"{self.name} does not get ready; {self._log.name} has its output") from None
                time.sleep(0.05)

    @property
    def url(self):
        return f"tcp://127.0.0.1:{self.port}"

    def count(self):
        """Messages that it was given since it started, by its own count."""
        return PROTOCOLS[self.dialect](self)

    def cpu_us(self):
        return cpu_us_of(self.process.pid)

    def stand_still(self, seconds):
        """Stops all its processes for a while. Returns how long they really stood."""
        stopped = processes_of(self.process.pid)
        began = time.monotonic()
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        return time.monotonic() - began

    def stop(self):
        """Ends it, and removes what it has written."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()
        shutil.rmtree(self.data, ignore_errors=True)


def guarantee_of(manifest, level):
    """What a message of this level survives: when it is confirmed, and when it is delivered."""
    for line in manifest["levels"]:
        name, _, promise = line.partition(": ")
        if name == level:
            confirm, deliver = (words.split()[1] for words in promise.split(", "))
            return {"confirm": confirm, "deliver": deliver}
    levels = ", ".join(line.partition(":")[0] for line in manifest["levels"])
    raise NotHere(f"{manifest['name']} has no level {level}; it has {levels}: set LEVEL")


def redis_count(broker):
    """Calls of XADD. One connection and one question in the protocol's inline form."""
    with socket.create_connection(("127.0.0.1", broker.port), timeout=ANSWER_S) as line:
        line.sendall(b"INFO commandstats\r\n")
        answer = b""
        while not (head := answer.partition(b"\r\n"))[1] or len(head[2]) < redis_length(head[0]):
            read = line.recv(65536)
            if not read:
                raise ConnectionError("the broker closed the connection")
            answer += read
    return xadds_in(answer.decode())


def redis_length(head):
    """The bytes of a text whose head this is, with the end of its line. While Redis reads its log, it answers an error."""
    if not head.startswith(b"$"):
        raise ValueError(f"{head!r} is no text")
    return int(head[1:]) + 2


def xadds_in(text):
    for line in text.splitlines():
        if line.startswith("cmdstat_xadd:calls="):
            return int(line.removeprefix("cmdstat_xadd:calls=").partition(",")[0])
    return 0


def nats_count(broker):
    """Messages in all streams, by the server's own page. Nothing removes messages in this comparison."""
    ports = list(broker.data.glob("*.ports"))
    if not ports:
        raise ValueError("the server has not written its ports yet")
    (monitoring,) = json.loads(ports[0].read_text())["monitoring"]
    # No proxy of the user's environment belongs between us and this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{monitoring}/jsz", timeout=ANSWER_S) as page:
        return int(json.load(page)["messages"])


PROTOCOLS = {"resp": redis_count, "nats": nats_count}
