// Starts the gateway: in this process with one worker, else in WORKER_THREADS processes under this one.

import cluster, { type Worker } from "node:cluster";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Config, ConfigError, readConfig } from "./config.js";
import { Gateway } from "./gateway.js";
import { InferenceClient } from "./inference.js";
import { Ledger, localLimits, type Permit, RemoteLimits, type ToPrimary, type ToWorker } from "./limits.js";
import { Metrics, type Snapshot } from "./metrics.js";

/** Beyond the drain's own time, what a worker may take to end. */
const WORKER_EXIT_MARGIN_MS = 700;

function configOrExit(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}

function printVersions(): void {
  const manifest = createRequire(import.meta.url).resolve("ws/package.json");
  const ws = (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
  const { node, v8, uv, nghttp2 } = process.versions;
  console.log(JSON.stringify({ runtime: `node ${node}`, libraries: { ws, v8, uv, nghttp2 } }));
}

function fail(error: Error): never {
  console.error(error.message);
  process.exit(1);
}

function runAlone(config: Config): void {
  printVersions();
  const metrics = new Metrics();
  const limits = localLimits(new Ledger(config.maxSessions, config.maxInflightJobs));
  const shared = { config, metrics, limits, inference: new InferenceClient(config) };
  const gateway = new Gateway(shared, async () => [metrics.snapshot()]);
  process.once("SIGTERM", () => void gateway.drain().then(() => process.exit(0)));
  gateway.listen().catch(fail);
}

function runWorker(config: Config): void {
  const send = (message: ToPrimary) => process.send?.(message);
  const metrics = new Metrics();
  const limits = new RemoteLimits(new Ledger(config.maxSessions, config.maxInflightJobs), send);
  const scrapes = new Map<number, (snapshots: Snapshot[]) => void>();
  let scrapeId = 0;
  const scrape = () =>
    new Promise<Snapshot[]>((resolve) => {
      scrapeId += 1;
      scrapes.set(scrapeId, resolve);
      send({ type: "scrape", id: scrapeId });
    });
  const gateway = new Gateway({ config, metrics, limits, inference: new InferenceClient(config) }, scrape);
  process.on("message", (message: ToWorker) => {
    if (message.type === "granted") {
      limits.answered(message.id, message.granted);
    } else if (message.type === "scrape") {
      send({ type: "snapshot", id: message.id, snapshot: metrics.snapshot() });
    } else if (message.type === "scraped") {
      scrapes.get(message.id)?.(message.snapshots);
      scrapes.delete(message.id);
    } else {
      void gateway.drain().then(() => process.exit(0));
    }
  });
  // A signal to the whole process group comes here too; the primary says when to drain.
  process.on("SIGTERM", () => {});
  gateway.listen().catch(fail);
}

/** Gathers a snapshot of every worker for the one that was asked. */
class Scraper {
  readonly #pending = new Map<
    number,
    { snapshots: Map<Worker, Snapshot>; reply: (all: Snapshot[]) => void }
  >();
  #id = 0;

  start(workers: ReadonlySet<Worker>, reply: (all: Snapshot[]) => void): void {
    this.#id += 1;
    this.#pending.set(this.#id, { snapshots: new Map(), reply });
    for (const worker of workers) tell(worker, { type: "scrape", id: this.#id });
  }

  got(id: number, worker: Worker, snapshot: Snapshot, workers: ReadonlySet<Worker>): void {
    this.#pending.get(id)?.snapshots.set(worker, snapshot);
    this.check(workers);
  }

  /** Also after a worker has gone, which will not answer any more. */
  check(workers: ReadonlySet<Worker>): void {
    for (const [id, { snapshots, reply }] of this.#pending) {
      if (![...workers].every((worker) => snapshots.has(worker))) continue;
      this.#pending.delete(id);
      reply([...snapshots.values()]);
    }
  }
}

function tell(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

function runPrimary(config: Config): void {
  printVersions();
  const ledger = new Ledger(config.maxSessions, config.maxInflightJobs);
  const workers = new Set<Worker>();
  const scraper = new Scraper();
  let draining = false;
  process.once("SIGTERM", () => {
    draining = true;
    for (const worker of workers) tell(worker, { type: "drain" });
    setTimeout(() => {
      for (const worker of workers) worker.process.kill("SIGKILL");
      process.exit(0);
    }, config.drainTimeoutMs + WORKER_EXIT_MARGIN_MS);
  });
  const take = (worker: Worker, permit: Permit, id: number) =>
    tell(worker, { type: "granted", id, granted: ledger.take(permit) });

  for (let index = 0; index < config.workers; index += 1) {
    const worker = cluster.fork();
    workers.add(worker);
    worker.on("message", (message: ToPrimary) => {
      if (message.type === "take") take(worker, message.permit, message.id);
      else if (message.type === "give") ledger.give(message.permit);
      else if (message.type === "snapshot") scraper.got(message.id, worker, message.snapshot, workers);
      else {
        const { id } = message;
        scraper.start(workers, (snapshots) => tell(worker, { type: "scraped", id, snapshots }));
      }
    });
    worker.on("exit", (code, signal) => {
      workers.delete(worker);
      scraper.check(workers);
      // Its sessions, permits and counters are gone with it: better a restart than a gateway that is half there.
      if (!draining) fail(new Error(`a worker ended (${signal ?? code})`));
      if (workers.size === 0) process.exit(0);
    });
  }
}

const config = configOrExit();
if (cluster.isWorker) runWorker(config);
else if (config.workers === 1) runAlone(config);
else runPrimary(config);
