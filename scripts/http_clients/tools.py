"""The tools: how each is called, and what it says. All calls of a tool are in its one function.

Each function takes a `Job` and returns what the tool itself reports: `requests`, `errors`, `seconds` of its measured time
and `percentiles_ms`. `None` stands for what it does not report.
"""

import dataclasses
import json
import math
import pathlib
import re

from machine import ROOT, Failure, Ran

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

UNITS_MS = {"us": 0.001, "µs": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@dataclasses.dataclass
class Job:
    """One run of a tool. Without a rate it is a closed loop."""

    url: str
    rate: int | None
    seconds: int
    connections: int
    core: int
    # Its files begin with this path.
    stem: pathlib.Path
    # Whether percentiles are wanted that cost the tool more than its usual output.
    percentiles: bool = False

    def output(self, ending="txt"):
        return self.stem.with_name(f"{self.stem.name}.{ending}")


def report(requests, errors, seconds, percentiles_ms):
    return {"requests": requests, "errors": errors, "seconds": seconds, "percentiles_ms": percentiles_ms}


def duration_ms(text):
    """`1.23ms` of wrk."""
    number, unit = re.fullmatch(r"([0-9.]+)([a-zµ]+)", text).groups()
    return round(float(number) * UNITS_MS[unit], 4)


def percentiles_of(sorted_ms):
    """The nearest rank."""
    if not sorted_ms:
        return None
    return {name: sorted_ms[max(0, math.ceil(len(sorted_ms) * q) - 1)] for name, q in QUANTILES.items()}


def wrk(job):
    command = ["wrk", "--threads", "1", "--connections", str(job.connections), "--duration", f"{job.seconds}s", "--latency", job.url]
    ran = Ran(command, job.core, job.output())
    ran.require("wrk")
    return ran, read_wrk(ran.text)


def read_wrk(text):
    requests, time = re.search(r"^ +([0-9]+) requests in ([0-9.a-z]+),", text, re.MULTILINE).groups()
    errors = sum(int(count) for count in re.findall(r"Non-2xx or 3xx responses: ([0-9]+)", text))
    sockets = re.search(r"Socket errors: connect ([0-9]+), read ([0-9]+), write ([0-9]+), timeout ([0-9]+)", text)
    errors += sum(int(count) for count in sockets.groups()) if sockets else 0
    percentiles = {f"p{name}": duration_ms(value) for name, value in re.findall(r"^ +([0-9]+)% +([0-9.]+[a-z]+)$", text, re.MULTILINE)}
    # Its table of threads: average, deviation, maximum.
    percentiles["max"] = duration_ms(re.search(r"^ +Latency +\S+ +\S+ +(\S+)", text, re.MULTILINE)[1])
    kept = {name: percentiles.get(name) for name in QUANTILES}
    return report(int(requests), errors, duration_ms(time) / 1000, kept)


def h2load(job):
    command = ["h2load", "--h1", "--threads", "1", "--clients", str(job.connections), "--duration", str(job.seconds)]
    if job.rate is not None:
        # The rate is that of a connection, and a whole number is not asked for.
        command += ["--rps", f"{job.rate / job.connections:g}"]
    log = job.output("log")
    if job.percentiles:
        # It prints no percentiles. A line for each request costs it time.
        command += ["--log-file", str(log)]
    ran = Ran([*command, job.url], job.core, job.output())
    ran.require("h2load")
    return ran, read_h2load(ran.text, log.read_text() if job.percentiles else None)


def read_h2load(text, log=None):
    seconds = re.search(r"^finished in ([0-9.]+[a-z]+),", text, re.MULTILINE)[1]
    counts = re.search(r"^requests: .* ([0-9]+) succeeded, ([0-9]+) failed, ([0-9]+) errored, ([0-9]+) timeout", text, re.MULTILINE)
    succeeded, *failed = (int(count) for count in counts.groups())
    percentiles = None
    if log is not None:
        percentiles = percentiles_of(sorted(int(line.split("\t")[2]) / 1000 for line in log.splitlines()))
    # What failed is also errored, or timed out.
    return report(succeeded, failed[0], duration_ms(seconds) / 1000, percentiles)


def oha(job, corrected=False):
    command = ["oha", "-z", f"{job.seconds}s", "-c", str(job.connections), "--worker-threads", "1", "--no-tui", "--output-format", "json"]
    if job.rate is not None:
        command += ["-q", str(job.rate)]
    if corrected:
        command.append("--latency-correction")
    ran = Ran([*command, job.url], job.core, job.output())
    ran.require("oha")
    return ran, read_oha(ran.text)


def oha_corrected(job):
    return oha(job, corrected=True)


def read_oha(text):
    said = json.loads(text)
    statuses = said["statusCodeDistribution"]
    answered = sum(statuses.values())
    good = sum(count for status, count in statuses.items() if status.startswith("2"))
    # What is under way at the end is not an error of anybody.
    errors = sum(count for name, count in said["errorDistribution"].items() if name != "aborted due to deadline")
    percentiles = {name: said["latencyPercentiles"].get(name) for name in QUANTILES}
    percentiles["max"] = said["summary"]["slowest"]
    in_ms = {name: None if value is None else round(value * 1000, 4) for name, value in percentiles.items()}
    return report(good, errors + answered - good, said["summary"]["total"], in_ms)


def k6(job):
    script = job.output("js")
    executor = {"executor": "constant-vus", "vus": job.connections, "duration": f"{job.seconds}s"}
    if job.rate is not None:
        vus = {"preAllocatedVUs": job.connections, "maxVUs": job.connections}
        executor = {"executor": "constant-arrival-rate", "rate": job.rate, "timeUnit": "1s", "duration": f"{job.seconds}s", **vus}
    options = {"scenarios": {"load": executor}, "summaryTrendStats": ["med", "p(90)", "p(99)", "p(99.9)", "max", "count"]}
    script.write_text(
        'import http from "k6/http";\n'
        f"export const options = {json.dumps(options)};\n"
        f"export default function () {{ http.get({json.dumps(job.url)}); }}\n"
    )
    summary = job.output("json")
    command = ["k6", "run", "--quiet", "--no-color", "--address", "", "--summary-export", str(summary), str(script)]
    ran = Ran(command, job.core, job.output(), {"GOMAXPROCS": "1"})
    ran.require("k6")
    return ran, read_k6(summary.read_text(), job.seconds)


def read_k6(summary, seconds):
    metrics = json.loads(summary)["metrics"]
    requests = metrics["http_reqs"]["count"]
    # `passes` counts requests for which it is true that they failed.
    failed = metrics["http_req_failed"]["passes"]
    latency = metrics["http_req_duration"]
    names = {"p50": "med", "p90": "p(90)", "p99": "p(99)", "p99.9": "p(99.9)", "max": "max"}
    percentiles = {name: round(latency[theirs], 4) for name, theirs in names.items()}
    said = report(requests - failed, failed, seconds, percentiles)
    said["dropped"] = metrics.get("dropped_iterations", {}).get("count", 0)
    return said


PLIMSOLL = ROOT / "target/release/plimsoll"


def plimsoll(job):
    """All that depends on Plimsoll's own flags and records is here and in `read_plimsoll`."""
    if not PLIMSOLL.is_file():
        return None, "target/release/plimsoll is not built"
    folder = job.output("plimsoll")
    # It pins its own threads.
    command = [str(PLIMSOLL), "run", "--workload", "http", "--test", "rate", "--url", job.url]
    command += ["--connections", str(job.connections), "--client-cpus", str(job.core), "--out", str(folder)]
    command += ["--ramp", "1", "--warm-up", "1", "--measured", str(job.seconds)]
    # Its closed loop comes after a trial at a rate, which is not what is wanted of it then.
    command += ["--load", str(job.rate or 1000)] + (["--closed-loop"] if job.rate is None else [])
    ran = Ran(command, job.core, job.output())
    if ran.code == 2 and "workload" in ran.text:
        return None, "this plimsoll has no workload http"
    # A verdict against the server is an answer, and one against the measurement is told beside its figures.
    ran.require("plimsoll", codes=(0, 1, 3))
    records = sorted(folder.rglob("trial-*.json"))
    if not records:
        raise Failure(f"plimsoll left no record in {folder}")
    return ran, read_plimsoll(records[-1].read_text(), job.rate is None)


def find(tree, name):
    """The first value under this name, at any depth."""
    if isinstance(tree, dict):
        if name in tree:
            return tree[name]
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            found = find(branch, name)
            if found is not None:
                return found
    return None


def read_plimsoll(text, closed_loop):
    trial = json.loads(text)
    # The parameters have names of the section, so they must not be found first.
    http = trial["http"]
    seconds = find(trial, "measured_s")
    if closed_loop:
        loop = http["closed_loop"]
        percentiles = {"p50": loop["p50_ms"], "p90": None, "p99": loop["p99_ms"], "p99.9": None, "max": loop["max_ms"]}
        return report(None, None, None, percentiles) | {"per_second": loop["completed_per_s"], "verdict": trial["verdict"]}
    latency = find(trial, "from_schedule")
    percentiles = {name: latency.get(name.replace(".", "_") + "_ms", latency.get(name.replace(".", "") + "_ms")) for name in QUANTILES}
    per_second = http["completed_per_s"]
    errors = sum(outcome["count"] for outcome in http["outcomes"])
    return report(None, errors, seconds, percentiles) | {"per_second": per_second, "verdict": trial["verdict"]}


TOOLS = {
    "wrk": {"wrk": wrk},
    "h2load": {"h2load": h2load},
    "oha": {"oha": oha, "oha, corrected": oha_corrected},
    "k6": {"k6": k6},
    "plimsoll": {"plimsoll": plimsoll},
}

# wrk knows no rate, and without a rate there is nothing to correct.
WITHOUT_RATE_ONLY = {"wrk"}
WITH_RATE_ONLY = {"oha, corrected"}

VERSIONS = {
    "wrk": (["wrk", "--version"], r"^wrk (\S+)"),
    "h2load": (["h2load", "--version"], r"nghttp2/(\S+)"),
    "oha": (["oha", "--version"], r"^oha (\S+)"),
    "k6": (["k6", "version"], r"^k6 v(\S+)"),
    "plimsoll": ([str(PLIMSOLL), "--version"], r"^plimsoll (.*)"),
}
