"""The tools: how each is called, and what it says. All calls of a tool are in its one function.

Each function takes a `Job` and returns the process that has ended and what the tool itself reports: `per_second`, `messages`
and `percentiles_ms`; `None` stands for what it does not report. A tool that cannot do a job raises `NotHere` with the reason.
"""

import dataclasses
import json
import pathlib
import re
import shutil
from collections.abc import Callable

from brokers import Broker, NotHere
from machine import ROOT, Failure, Ran

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

# How many messages tell the rate of a tool that takes a number and no time.
PROBE = 20_000


@dataclasses.dataclass
class Job:
    """One run of a tool. Without a rate it publishes as many as it can."""

    broker: Broker
    rate: int | None
    seconds: int
    writers: int
    message_bytes: int
    window: int
    core: int
    # What a tool without a rate has reached; the offered load of one with a rate must be above it.
    most_so_far: float
    # Its files begin with this path.
    stem: pathlib.Path
    # Called when all is prepared, with the seconds until the middle of the measured time.
    begin: Callable[[float], None]

    def output(self, ending="txt"):
        return self.stem.with_name(f"{self.stem.name}.{ending}")


def report(per_second, messages, percentiles_ms):
    return {"per_second": per_second, "messages": messages, "percentiles_ms": percentiles_ms}


def program(name, remedy):
    """A program of the user's PATH."""
    if shutil.which(name) is None:
        raise NotHere(f"{name} is not in PATH: {remedy}")
    return name


def redis_benchmark(job):
    """A closed loop: it writes a whole window, and waits for all answers before it writes the next one."""
    program("redis-benchmark", "sh scripts/broker-tools.sh --install")
    if job.rate is not None:
        raise NotHere("redis-benchmark knows no rate; its costs flat out are in part flat")
    payload = "x" * job.message_bytes

    def command(messages):
        options = ["-h", "127.0.0.1", "-p", str(job.broker.port), "-c", str(job.writers), "-P", str(job.window), "-n", str(messages)]
        return ["redis-benchmark", *options, "XADD", "plimsoll-tools", "*", "b", payload]

    probe = Ran(command(PROBE), job.core, job.output("probe"))
    probe.require("redis-benchmark")
    messages = max(PROBE, round(read_redis_benchmark(probe.text)["per_second"] * job.seconds))
    job.begin(job.seconds / 2)
    ran = Ran(command(messages), job.core, job.output())
    ran.require("redis-benchmark")
    return ran, read_redis_benchmark(ran.text)


def read_redis_benchmark(text):
    # While it runs it overwrites a line of its own.
    text = text.replace("\r", "\n")
    per_second = float(re.search(r"throughput summary: ([0-9.]+) requests per second", text)[1])
    messages = int(re.search(r"^ +([0-9]+) requests completed in", text, re.MULTILINE)[1])
    summary = re.search(r"^ +avg +min +p50 +p95 +p99 +max\n +([0-9. ]+)$", text, re.MULTILINE)[1].split()
    percentiles = {"p50": float(summary[2]), "p99": float(summary[4]), "p99.9": None, "max": float(summary[5])}
    distribution = text.partition("Latency by percentile distribution:")[2].partition("Cumulative distribution")[0]
    for percent, ms in re.findall(r"^([0-9.]+)% <= ([0-9.]+) milliseconds", distribution, re.MULTILINE):
        if float(percent) >= 99.9:
            # Its own steps are by halves: the first one from 99.9 on is 99.902.
            percentiles["p99.9"] = float(ms)
            break
    return report(per_second, messages, percentiles)


NATS_REMEDY = "go install github.com/nats-io/natscli/nats@v0.5.1, and add the folder of Go's programs to PATH"


def nats_bench(job):
    """It writes a whole batch, and waits for all answers. At a rate it sleeps to keep it."""
    program("nats", NATS_REMEDY)

    def command(messages):
        pace = [] if job.rate is None else ["--throughput", str(job.rate)]
        load = ["--clients", str(job.writers), "--msgs", str(messages), "--size", f"{job.message_bytes}B", "--batch", str(job.window)]
        stream = ["--create", "--maxbytes", "16GB", "--no-progress"]
        server = ["--server", f"nats://127.0.0.1:{job.broker.port}"]
        return ["nats", *server, "bench", "js", "pub", "async", "plimsoll-tools", *load, *stream, *pace]

    # One thread of Go for its one core, as the broker has; and no folder of settings in the user's home.
    env = {"GOMAXPROCS": "1", "XDG_CONFIG_HOME": str(job.stem.parent / "nats-settings"), "NO_COLOR": "1"}
    if job.rate is not None:
        messages = job.rate * job.seconds
    else:
        probe = Ran(command(PROBE), job.core, job.output("probe"), env)
        probe.require("nats bench")
        messages = max(PROBE, round(read_nats_bench(probe.text)["per_second"] * job.seconds))
    job.begin(job.seconds / 2)
    ran = Ran(command(messages), job.core, job.output(), env)
    ran.require("nats bench")
    return ran, {**read_nats_bench(ran.text), "messages": messages}


def read_nats_bench(text):
    """Its latencies are those of a whole batch, from its first message to its last answer, without the time slept."""
    found = re.search(r"stats: ([0-9,]+) msgs/sec(.*)", text)
    if found is None:
        raise Failure("nats bench did not say its rate; its output is beside the record")
    # With several clients they are on a line of their own, with one client behind its rate.
    of_several = re.search(r"latencies per operation (.*)", text)
    latencies = of_several[1] if of_several else found[2]
    us = {name.lower(): float(value.replace(",", "")) for name, value in re.findall(r"\b(max|P50|P99|P99\.9):? ([0-9.,]+)us", latencies)}
    percentiles = {name: round(us[name] / 1000, 4) for name in QUANTILES if name in us}
    return report(float(found[1].replace(",", "")), None, {name: percentiles.get(name) for name in QUANTILES} if us else None)


PLIMSOLL = ROOT / "target/release/plimsoll"
RAMP_S = 1
WARM_UP_S = 1


def plimsoll(job):
    """All that depends on Plimsoll's own flags and records is here and in `read_plimsoll`."""
    if not PLIMSOLL.is_file():
        raise NotHere("target/release/plimsoll is not built: make build")
    folder = job.output("plimsoll")
    # Flat out: more than anybody has reached. The window then decides, as with the other tools.
    rate = job.rate or max(PROBE, round(job.most_so_far * 2))
    # Then there is no warm-up either: what would be left of it would be confirmed in the window and not count there.
    warm_up_s = 0 if job.rate is None else WARM_UP_S
    # It pins its own threads.
    command = [str(PLIMSOLL), "run", "--workload", "broker", "--test", "publish", "--url", job.broker.url]
    command += ["--dialect", job.broker.dialect, "--load", str(rate), "--client-cpus", str(job.core), "--out", str(folder)]
    command += [f"--{when}-at={where}" for when, where in job.broker.guarantee.items()]
    command += ["--writers", str(job.writers), "--message-bytes", str(job.message_bytes), "--confirm", str(job.window)]
    command += ["--ramp", str(RAMP_S), "--warm-up", str(warm_up_s), "--measured", str(job.seconds)]
    job.begin(RAMP_S + warm_up_s + job.seconds / 2)
    ran = Ran(command, job.core, job.output())
    # A verdict against the broker is an answer, and one against the measurement is told beside its figures.
    ran.require("plimsoll", codes=(0, 1, 3))
    records = sorted(folder.rglob("trial-*.json"))
    if not records:
        raise Failure(f"plimsoll left no record in {folder}")
    return ran, read_plimsoll(records[-1].read_text())


def read_plimsoll(text):
    trial = json.loads(text)
    confirm = (trial["latency"].get("confirm") or {}).get("from_schedule", {})
    names = {"p50": "p50_ms", "p99": "p99_ms", "p99.9": "p999_ms", "max": "max_ms"}
    percentiles = {name: confirm.get(field) for name, field in names.items()}
    said = report(trial["broker"]["confirmed_per_s"], None, percentiles)
    return {**said, "verdict": trial["verdict"], "own_us_per_message": trial["client"]["cpu_us_per_frame"]}


# By what the broker speaks. Plimsoll is last: flat out it is offered more than the others reached.
TOOLS = {
    "resp": {"redis-benchmark": redis_benchmark, "plimsoll": plimsoll},
    "nats": {"nats bench": nats_bench, "plimsoll": plimsoll},
}

# They publish as many as they can, or nothing.
WITHOUT_RATE = {"redis-benchmark"}

VERSIONS = {
    "redis-benchmark": (["redis-benchmark", "--version"], r"^redis-benchmark (\S+)"),
    "nats": (["nats", "--version"], r"^v?([0-9]\S*)"),
    "plimsoll": ([str(PLIMSOLL), "--version"], r"^plimsoll (.*)"),
}
