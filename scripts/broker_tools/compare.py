"""Runs the comparison of scripts/broker-tools.sh, which says what the words and variables mean."""

import datetime
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import threading
import tomllib

# Processes, cores and CPU time are those of the other comparison.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "http_clients"))
# No bytecode next to the sources.
sys.dont_write_bytecode = True

from brokers import Broker, NotHere  # noqa: E402
from machine import ROOT, Failure, busy_us  # noqa: E402
from tools import QUANTILES, TOOLS, VERSIONS, WITHOUT_RATE, Job  # noqa: E402

PARTS = ("flat", "cost", "stop")
STOP_S = 0.5
# Of the two cores: with more than this taken by others, a run is marked.
OTHERS_CORES = 0.1


def stop_truth_ms(quantile, seconds):
    """Latency at a broker that stands still for STOP_S once in so many seconds, of messages that come evenly.

    Those that come while it runs take no time, the others what is left of the stop. The time to work off what has
    piled up is not in it, so it is a lower bound.
    """
    running = 1 - STOP_S / seconds
    return 0.0 if quantile <= running else 1000 * STOP_S * (quantile - running) / (1 - running)


class Settings:
    """The variables, checked."""

    def __init__(self, environment):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise Failure("client and broker need a core each, and this machine gives only one")
        self.client_core = whole(environment, "CLIENT_CORE", cores[-1], 0)
        self.broker_core = whole(environment, "BROKER_CORE", cores[-2], 0)
        if self.client_core == self.broker_core:
            raise Failure("CLIENT_CORE and BROKER_CORE are the same core")
        if not {self.client_core, self.broker_core} <= set(cores):
            raise Failure(f"CLIENT_CORE and BROKER_CORE must be among {cores}")
        self.writers = whole(environment, "WRITERS", 2, 1)
        self.message_bytes = whole(environment, "MESSAGE_BYTES", 1024, 40)
        self.window = whole(environment, "WINDOW", 64, 1)
        self.rate = whole(environment, "RATE", 10_000, 1)
        self.seconds = whole(environment, "SECONDS_EACH", 10, 2)
        self.level = environment.get("LEVEL", "ephemeral")
        self.data = environment.get("DATA")
        self.brokers = environment.get("BROKERS", "redis nats").split()
        if not self.brokers:
            raise Failure("BROKERS must name a folder of targets/broker")


def whole(environment, name, default, least):
    text = environment.get(name, str(default))
    if not text.isdigit() or int(text) < least:
        raise Failure(f"{name}={text!r}: give a whole number from {least}")
    return int(text)


class Comparison:
    """All runs, into one record."""

    def __init__(self, settings, folder):
        self.settings = settings
        self.folder = folder
        self.data = pathlib.Path(settings.data).resolve() if settings.data else folder
        self.record = {
            "schema": "plimsoll-broker-tools-1",
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": output_of(["git", "-C", str(ROOT), "rev-parse", "HEAD"]),
            "machine": {"kernel": platform.release(), "cpu": cpu_model(), "cores": os.cpu_count()},
            "cores": {"client": settings.client_core, "broker": settings.broker_core},
            "level": settings.level,
            "writers": settings.writers,
            "message_bytes": settings.message_bytes,
            "window": settings.window,
            "rate_per_second": settings.rate,
            "seconds_each": settings.seconds,
            "stop_s": STOP_S,
            "versions": versions(),
            "guarantees": {},
            "runs": [],
        }

    def part(self, part):
        for name in self.settings.brokers:
            dialect = dialect_of(name)
            most = 0.0
            for tool, call in TOOLS[dialect].items():
                entry = self.run(part, name, tool, call, most)
                self.record["runs"].append(entry)
                print(line_of(entry), flush=True)
                most = max(most, entry.get("said_per_second") or 0.0)

    def run(self, part, name, tool, call, most):
        """One tool against a broker of its own."""
        settings = self.settings
        stem = self.folder / f"{part}-{name}-{re.sub(r'[^a-z0-9]+', '-', tool)}"
        entry = {"part": part, "broker": name, "tool": tool, "asked_per_second": None if part == "flat" else settings.rate}
        try:
            broker = Broker(name, settings.level, settings.broker_core, self.data / f"data-{stem.name}", stem.with_name(f"{stem.name}-broker.log"))
        except NotHere as why:
            return {**entry, "not_measured": str(why)}
        self.record["guarantees"][name] = broker.guarantee
        watch = Watch(broker, (settings.client_core, settings.broker_core), part == "stop")
        job = Job(
            broker, None if part == "flat" else settings.rate, settings.seconds, settings.writers, settings.message_bytes,
            settings.window, settings.client_core, most, stem, watch.begin,
        )
        try:
            if part == "stop" and tool in WITHOUT_RATE:
                # This part asks what its percentiles say of a stop, whatever its rate is.
                job.rate = entry["asked_per_second"] = None
            ran, said = call(job)
            return {**entry, **watch.end(ran, said)}
        # A tool that fails leaves the others' runs in the record.
        except (NotHere, Failure) as why:
            return {**entry, "not_measured": str(why)}
        finally:
            watch.cancel()
            broker.stop()


class Watch:
    """What a broker did, and what both cores did, during the measured run of a tool."""

    def __init__(self, broker, cores, stops):
        self.broker = broker
        self.cores = cores
        self.stops = stops
        self.stood_s = None
        self._timer = None
        self.begin(None)

    def begin(self, middle_s):
        """From here on it counts. In part stop the broker stands still when so many seconds have passed."""
        self.counted, self.cpu_us, self.both_us = self.broker.count(), self.broker.cpu_us(), busy_us(self.cores)
        if self.stops and middle_s is not None:
            self._timer = threading.Timer(middle_s, self._stand_still)
            self._timer.start()

    def _stand_still(self):
        self.stood_s = self.broker.stand_still(STOP_S)

    def cancel(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._timer = None

    def end(self, ran, said):
        """The figures of a run: what the tool says, what the broker counted, and what both cost."""
        broker_us, both_us = self.broker.cpu_us() - self.cpu_us, busy_us(self.cores) - self.both_us
        self.cancel()
        if self.stops and self.stood_s is None:
            raise Failure("a tool ended before the broker stood still; raise SECONDS_EACH")
        counted = self.broker.count() - self.counted
        others = (both_us - ran.cpu_us - broker_us) / 1e6 / ran.wall_s
        return {
            "said_per_second": round(said.pop("per_second"), 1),
            "counted_messages": counted,
            "client_us_per_message": round(ran.cpu_us / counted, 2) if counted else None,
            "broker_us_per_message": round(broker_us / counted, 2) if counted else None,
            "client_cores": round(ran.cpu_us / 1e6 / ran.wall_s, 3),
            "broker_cores": round(broker_us / 1e6 / ran.wall_s, 3),
            "others_cores": round(max(0.0, others), 3),
            "disturbed": others > OTHERS_CORES,
            "wall_s": round(ran.wall_s, 3),
            "stood_s": None if self.stood_s is None else round(self.stood_s, 3),
            "said": said,
        }


def dialect_of(name):
    manifest = ROOT / "targets/broker" / name / "target.toml"
    if not manifest.is_file():
        raise Failure(f"BROKERS: there is no folder targets/broker/{name}")
    dialect = tomllib.loads(manifest.read_text())["dialect"]
    if dialect not in TOOLS:
        raise Failure(f"BROKERS: {name} speaks {dialect}, and there is a tool for {', '.join(TOOLS)}")
    return dialect


def output_of(command):
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    # Some say their version on the other one.
    return (ran.stdout + ran.stderr).strip() or None


def versions():
    found = {}
    for name, (command, pattern) in VERSIONS.items():
        match = re.search(pattern, output_of(command) or "", re.MULTILINE)
        found[name] = match[1] if match else None
    return found


def cpu_model():
    match = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1] if match else None


def name_of(run):
    """The tool's name, and that it took its own figures back."""
    return f"{run['tool']} (invalid)" if run.get("said", {}).get("verdict") == "invalid" else run["tool"]


def line_of(run):
    where = f"{run['part']} {run['broker']} {name_of(run)}"
    if "not_measured" in run:
        return f"{where}: not measured: {run['not_measured']}"
    costs = f"client {number(run['client_us_per_message'], 2)} µs, broker {number(run['broker_us_per_message'], 2)} µs a message"
    disturbed = f"; DISTURBED by others, {run['others_cores']:.2f} of a core" if run["disturbed"] else ""
    return f"{where}: {run['said_per_second']:,.0f}/s; {costs}{disturbed}"


def number(value, digits=0):
    return "" if value is None else f"{value:,.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


HEAD = ["broker", "client", "asked/s", "said/s", "counted", "client µs", "own µs", "broker µs", "client cores", "broker cores", "others", *QUANTILES]


def row(run):
    asked = number(run["asked_per_second"]) or "as many as it can"
    begin = [run["broker"], name_of(run), asked]
    if "not_measured" in run:
        return [*begin, f"not measured: {run['not_measured']}", *[""] * (len(HEAD) - 4)]
    percentiles = run["said"]["percentiles_ms"] or {}
    return [
        *begin,
        number(run["said_per_second"]),
        number(run["counted_messages"]),
        number(run["client_us_per_message"], 2),
        number(run["said"].get("own_us_per_message"), 2),
        *(number(run[name], 2) for name in ("broker_us_per_message", "client_cores", "broker_cores", "others_cores")),
        *(number(percentiles.get(name), 2) for name in QUANTILES),
    ]


TITLES = {
    "flat": "Flat out",
    "cost": "CPU time and p99 at a rate",
    "stop": "The broker stands still once",
}


def page(record):
    """The tables, as Markdown."""
    versions_of = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if version)
    load = f"{record['writers']} writers, {record['message_bytes']:,} B, at most {record['window']:,} unconfirmed each, level {record['level']}"
    parts = [
        "# Tools of brokers",
        f"{versions_of}. {load}; {record['seconds_each']} s each, a core each for client and broker; {record['machine']['cpu']}, {record['at']}.",
        "`counted` is the broker's own count of the run. `client µs` and `broker µs` are CPU time of the whole process, start and report"
        " included, for each of them. `own µs` is what Plimsoll says of its load engine alone. `others` are cores that neither of the two"
        " used. Percentiles are in milliseconds, as each client reports them; an empty cell is not reported. Those of redis-benchmark and nats bench"
        " are of a window that was written at once, from its first byte or message to its last answer; nats bench leaves out what it slept."
        " Those of Plimsoll are of a message, from the time when it was due.",
    ]
    for part, title in TITLES.items():
        runs = [run for run in record["runs"] if run["part"] == part]
        if not runs:
            continue
        rows = [row(run) for run in runs]
        if part == "stop":
            truth = [number(stop_truth_ms(q, record["seconds_each"]), 2) for q in QUANTILES.values()]
            note = f"for {1000 * record['stop_s']:.0f} ms in the middle of {record['seconds_each']} s"
            rows.insert(0, ["any", f"by arithmetic: stands still {note}", *[""] * (len(HEAD) - 2 - len(truth)), *truth])
        parts += [f"## {title}", table(HEAD, rows)]
    parts.append("Not compared: PerfTest of RabbitMQ and ProducerPerformance of Kafka, which this script does not call.")
    return "\n\n".join(parts) + "\n"


def main(arguments):
    folder, *parts = arguments
    parts = parts or list(PARTS)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise Failure(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    comparison = Comparison(Settings(os.environ), pathlib.Path(folder).resolve())
    for name in comparison.settings.brokers:
        dialect_of(name)
    if (comparison.folder / "record.json").exists():
        raise Failure(f"{folder} has a record already; name another folder")
    comparison.folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        comparison.part(part)
    (comparison.folder / "table.md").write_text(page(comparison.record))
    # Last, so that a folder with a record is whole.
    (comparison.folder / "record.json").write_text(json.dumps(comparison.record, indent=2, ensure_ascii=False) + "\n")
    print(f"{folder}/table.md and {folder}/record.json")
    if all("not_measured" in run for run in comparison.record["runs"]):
        raise Failure("nothing could be measured; the lines above say why")


def terminated(_signal, _frame):
    raise SystemExit(143)


if __name__ == "__main__":
    # Whoever ends this script ends its brokers, too: they end on the way out.
    signal.signal(signal.SIGTERM, terminated)
    try:
        main(sys.argv[1:])
    except Failure as failure:
        print(f"broker-tools: {failure}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
