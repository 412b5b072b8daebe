"""Runs the comparison of scripts/compare-http-clients.sh, which says what the words and variables mean."""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

from machine import ROOT, Failure, Server, busy_us
from tools import QUANTILES, TOOLS, VERSIONS, WITH_RATE_ONLY, WITHOUT_RATE_ONLY, Job

PARTS = ("rates", "truth", "ceiling")

DELAY_US = 300
STOP_MS = 200
EVERY_MS = 2000

# Before the first tool, so that no tool pays for a server that has just started.
WARM_UP_S = 2

# Of the two cores: with more than this taken by others, a run is marked.
OTHERS_CORES = 0.1


def stop_truth_ms(quantile):
    """Latency at a server that stands still for STOP_MS in EVERY_MS, of requests that come evenly.

    Those that come while it runs take no time, the others what is left of the stop. The time to work off what has
    piled up is not in it, so it is a lower bound.
    """
    running = 1 - STOP_MS / EVERY_MS
    return 0.0 if quantile <= running else STOP_MS * (quantile - running) / (1 - running)


def truths():
    """Each fault: its variables, and the percentiles that follow from it."""
    return {
        "delay": ({"FAULT": "delay", "DELAY_US": str(DELAY_US)}, {name: DELAY_US / 1000 for name in QUANTILES}),
        "stop": (
            {"FAULT": "stop", "STOP_MS": str(STOP_MS), "EVERY_MS": str(EVERY_MS)},
            {name: round(stop_truth_ms(q), 3) for name, q in QUANTILES.items()},
        ),
    }


class Settings:
    """The variables, checked."""

    def __init__(self, environment):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise Failure("client and server need a core each, and this machine gives only one")
        self.client_core = self._whole(environment, "CLIENT_CORE", cores[-1], 0)
        self.server_core = self._whole(environment, "SERVER_CORE", cores[-2], 0)
        if self.client_core == self.server_core:
            raise Failure("CLIENT_CORE and SERVER_CORE are the same core")
        if not {self.client_core, self.server_core} <= set(cores):
            raise Failure(f"CLIENT_CORE and SERVER_CORE must be among {cores}")
        self.connections = self._whole(environment, "CONNECTIONS", 100, 1)
        self.seconds = self._whole(environment, "SECONDS_EACH", 10, 1)
        self.truth_rate = self._whole(environment, "TRUTH_RATE", 1000, 1)
        rates = environment.get("RATES", "5000 20000 50000").split()
        if not rates or not all(rate.isdigit() and int(rate) > 0 for rate in rates):
            raise Failure("RATES must be whole numbers with blanks between")
        self.rates = [int(rate) for rate in rates]
        self.target = environment.get("TARGET", "rust-hyper")
        self.liar = environment.get("LIAR", "lying-http")
        names = environment.get("TOOLS", " ".join(TOOLS)).split()
        unknown = [name for name in names if name not in TOOLS]
        if unknown:
            raise Failure(f"TOOLS: there is no {unknown[0]}; there are {', '.join(TOOLS)}")
        self.tools = {label: call for name in names for label, call in TOOLS[name].items()}

    @staticmethod
    def _whole(environment, name, default, least):
        text = environment.get(name, str(default))
        if not text.isdigit() or int(text) < least:
            raise Failure(f"{name}={text!r}: give a whole number from {least}")
        return int(text)


class Comparison:
    """All runs, into one record."""

    def __init__(self, settings, folder):
        self.settings = settings
        self.folder = folder
        self.record = {
            "schema": "plimsoll-http-clients-1",
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": output_of(["git", "-C", str(ROOT), "rev-parse", "HEAD"]),
            "machine": {"kernel": platform.release(), "cpu": cpu_model(), "cores": os.cpu_count()},
            "cores": {"client": settings.client_core, "server": settings.server_core},
            "connections": settings.connections,
            "seconds_each": settings.seconds,
            "versions": versions(),
            "servers": {},
            "runs": [],
        }

    def server(self, target, name, **variables):
        server = Server(target, self.settings.server_core, self.folder / f"server-{name}.log", **variables)
        self.record["servers"][name] = {"target": target, "variables": variables, "start_line": server.start_line()}
        return server

    def run(self, part, name, call, server, rate, **more):
        """One tool against a server that runs; the result goes to the record, and a line to the terminal."""
        settings = self.settings
        percentiles = part == "truth"
        stem = self.folder / "-".join(re.sub(r"[^a-z0-9]+", "-", str(word)) for word in (part, *more.values(), rate or "most", name))
        job = Job(server.url, rate, settings.seconds, settings.connections, settings.client_core, stem, percentiles)
        entry = {"part": part, "tool": name, "asked_per_second": rate, **more}
        both = (settings.client_core, settings.server_core)
        counted, cpu_us, both_us = server.requests(), server.cpu_us(), busy_us(both)
        ran, said = call(job)
        if ran is None:
            entry["not_measured"] = said
        else:
            # Before the counter is asked again, which costs the server something, too.
            server_cpu_us, both_us = server.cpu_us() - cpu_us, busy_us(both) - both_us
            if counted is not None:
                # The two looks at the counter are themselves requests; the first is in `counted`.
                counted = server.requests() - counted - 1
            entry |= measured(said, counted, ran, server_cpu_us, settings.seconds)
            others = (both_us - ran.cpu_us - server_cpu_us) / 1e6 / ran.wall_s
            entry |= {"others_cores": round(max(0.0, others), 3), "disturbed": others > OTHERS_CORES}
        self.record["runs"].append(entry)
        print(line_of(entry), flush=True)

    def rates(self):
        server = self.server(self.settings.target, "rates")
        try:
            self._warm_up(server)
            for rate in self.settings.rates:
                for name, call in self._tools(without=WITHOUT_RATE_ONLY):
                    self.run("rates", name, call, server, rate)
        finally:
            server.stop()

    def ceiling(self):
        server = self.server(self.settings.target, "ceiling")
        try:
            self._warm_up(server)
            for name, call in self._tools(without=WITH_RATE_ONLY):
                self.run("ceiling", name, call, server, None)
        finally:
            server.stop()

    def truth(self):
        self.record["truth"] = {}
        for fault, (variables, percentiles) in truths().items():
            self.record["truth"][fault] = {"variables": variables, "percentiles_ms": percentiles}
            for name, call in self._tools(without=WITHOUT_RATE_ONLY):
                # A server each: the stops come at the same places of every run.
                server = self.server(self.settings.liar, fault, **variables)
                try:
                    self.run("truth", name, call, server, self.settings.truth_rate, fault=fault)
                finally:
                    server.stop()

    def _tools(self, without):
        return [(name, call) for name, call in self.settings.tools.items() if name not in without]

    def _warm_up(self, server):
        wrk = ["wrk", "--threads", "1", "--connections", str(self.settings.connections), "--duration", f"{WARM_UP_S}s", server.url]
        command = ["taskset", "--cpu-list", str(self.settings.client_core), *wrk]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measured(said, counted, ran, server_cpu_us, asked_s):
    """The figures of a run: what the tool says, what the server counted, and what both cost."""
    per_second = said.pop("per_second", None)
    if per_second is None:
        per_second = said["requests"] / said["seconds"]
    # A tool that asks before and after its measured time is charged for all that it asks.
    requests = counted if counted is not None else said["requests"]
    figures = {
        "said_per_second": round(per_second, 1),
        "counted_requests": counted,
        # The measured time of those that warm up is a part of what was counted, so their rate is not known by that.
        "counted_per_second": round(counted / asked_s, 1) if counted is not None and said["requests"] is not None else None,
        "client_cores": round(ran.cpu_us / 1e6 / ran.wall_s, 3),
        "server_cores": round(server_cpu_us / 1e6 / ran.wall_s, 3),
        "client_us_per_request": round(ran.cpu_us / requests, 2) if requests else None,
        "server_us_per_request": round(server_cpu_us / requests, 2) if requests else None,
        "wall_s": round(ran.wall_s, 3),
    }
    return {**figures, "said": said}


def output_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
    except OSError:
        return None


def versions():
    found = {}
    for name, (command, pattern) in VERSIONS.items():
        try:
            # wrk says it with an exit code of 1.
            text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except OSError:
            text = ""
        match = re.search(pattern, text, re.MULTILINE)
        found[name] = match[1] if match else None
    return found


def cpu_model():
    match = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1] if match else None


def line_of(run):
    where = run.get("fault") or run["part"]
    asked = "most" if run["asked_per_second"] is None else f"{run['asked_per_second']:,}/s"
    if "not_measured" in run:
        return f"{where} {asked} {run['tool']}: not measured: {run['not_measured']}"
    shares = f"client {run['client_cores']:.2f} of a core, server {run['server_cores']:.2f}"
    disturbed = f"; DISTURBED by others, {run['others_cores']:.2f} of a core" if run["disturbed"] else ""
    return f"{where} {asked} {name_of(run)}: {run['said_per_second']:,.0f}/s; {shares}{disturbed}"


def name_of(run):
    """The tool's name, and that it took its own figures back."""
    return f"{run['tool']} (invalid)" if run.get("said", {}).get("verdict") == "invalid" else run["tool"]


def number(value, digits=0):
    return "" if value is None else f"{value:,.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def rate_rows(runs):
    for run in runs:
        asked = number(run["asked_per_second"]) or "as many as it can"
        if "not_measured" in run:
            yield [run["tool"], asked, f"not measured: {run['not_measured']}", *[""] * 8]
            continue
        of_asked = run["said_per_second"] / run["asked_per_second"] if run["asked_per_second"] else None
        cells = [number(run["said_per_second"]), number(run["counted_per_second"]), number(of_asked, 3)]
        cells += [number(run[f"{side}_us_per_request"], 2) for side in ("client", "server")]
        cells += [number(run[f"{side}_cores"], 2) for side in ("client", "server", "others")]
        yield [name_of(run), asked, *cells, number(run["said"]["errors"])]


def truth_rows(record, fault):
    truth = record["truth"][fault]["percentiles_ms"]
    yield ["by arithmetic", "", *(number(truth[name], 2) for name in QUANTILES), ""]
    for run in record["runs"]:
        if run.get("fault") != fault:
            continue
        if "not_measured" in run:
            yield [run["tool"], f"not measured: {run['not_measured']}", *[""] * (len(QUANTILES) + 1)]
            continue
        percentiles = run["said"]["percentiles_ms"] or {}
        cells = [number(run["said_per_second"]), *(number(percentiles.get(name), 2) for name in QUANTILES)]
        yield [name_of(run), *cells, number(run["others_cores"], 2)]


def page(record):
    """The tables, as Markdown."""
    rate_head = ["client", "asked/s", "said/s", "counted/s", "of asked", "client µs", "server µs", "client cores", "server cores", "others", "errors"]
    versions_of = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if version)
    parts = [
        "# HTTP clients on one server",
        f"{versions_of}. {record['connections']} connections, a core each, {record['seconds_each']} s each; {record['machine']['cpu']}, {record['at']}.",
    ]
    for part, title in (("rates", "Asked and achieved"), ("ceiling", "Closed loop")):
        runs = [run for run in record["runs"] if run["part"] == part]
        if runs:
            target = record["servers"][part]["target"]
            legend = "`counted` is the server's own count, µs are CPU time of a request, `others` are cores that neither of the two used."
            parts += [f"## {title}", f"Server: {target}. {legend}", table(rate_head, rate_rows(runs))]
    for fault in record.get("truth", {}):
        variables = " ".join(f"{name}={value}" for name, value in record["truth"][fault]["variables"].items())
        parts += [f"## Truth: {variables}", "Percentiles in milliseconds, as each client reports them; those of h2load are from its log."]
        parts.append(table(["client", "said/s", *QUANTILES, "others"], truth_rows(record, fault)))
    return "\n\n".join(parts) + "\n"


def main(arguments):
    folder, *parts = arguments
    parts = parts or list(PARTS)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise Failure(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    comparison = Comparison(Settings(os.environ), pathlib.Path(folder).resolve())
    comparison.folder.mkdir(parents=True, exist_ok=True)
    if (comparison.folder / "record.json").exists():
        raise Failure(f"{folder} has a record already; name another folder")
    for part in parts:
        getattr(comparison, part)()
    (comparison.folder / "table.md").write_text(page(comparison.record))
    # Last, so that a folder with a record is whole.
    (comparison.folder / "record.json").write_text(json.dumps(comparison.record, indent=2, ensure_ascii=False) + "\n")
    print(f"{folder}/table.md and {folder}/record.json")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failure as failure:
        print(f"compare-http-clients: {failure}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
