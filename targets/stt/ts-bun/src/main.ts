/** Reads the configuration, starts the workers, serves until SIGTERM or SIGINT, drains. */

import { once } from "node:events";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { COUNTERS } from "./metrics.ts";
import { type GatewayWorker, startWorker } from "./server.ts";
import { allocateShared, Shared, type SharedMemory } from "./shared.ts";
import { startLine } from "./versions.ts";
import type { FromWorker, ToWorker, WorkerData } from "./worker.ts";

/** The share of DRAIN_TIMEOUT_MS after which the process ends, whatever is still open; the rest is for the exit. */
const DRAIN_SHARE = 0.95;

const EXIT_BAD_CONFIG = 2;

function configOrExit(): Config {
  try {
    return readConfig(process.env, availableParallelism());
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(EXIT_BAD_CONFIG);
  }
}

/** A thread with a worker on it; resolves when that listens. */
async function startThread(config: Config, memory: SharedMemory): Promise<GatewayWorker> {
  const workerData: WorkerData = { config, memory };
  const thread = new Worker(new URL("./worker.ts", import.meta.url), { workerData });
  // A worker that ends takes its sessions with it; whoever supervises the gateway starts a whole one.
  thread.on("error", (error: unknown) => die(`a worker failed: ${String(error)}`));
  thread.on("exit", (code) => die(`a worker ended with ${code}`));
  const told = async (what: FromWorker): Promise<void> => {
    const [seen] = await once(thread, "message");
    if (seen !== what) die(`a worker said ${String(seen)} instead of ${what}`);
  };
  await told("listening");
  return {
    async drain(timeoutMs) {
      const drained = told("drained");
      thread.postMessage({ drainTimeoutMs: timeoutMs } satisfies ToWorker);
      await drained;
    },
  };
}

function die(message: string): never {
  console.error(message);
  process.exit(1);
}

/** All workers. The main thread is one of them, so with one worker there is no other thread and nothing between. */
async function startWorkers(config: Config, memory: SharedMemory): Promise<readonly GatewayWorker[]> {
  const threads = Array.from({ length: config.workerThreads - 1 }, () => startThread(config, memory));
  const others = await Promise.all(threads);
  try {
    return [...others, startWorker(config, memory)];
  } catch (error) {
    return die(`cannot listen on port ${config.port}: ${String(error)}`);
  }
}

async function drainAll(config: Config, shared: Shared, workers: readonly GatewayWorker[]): Promise<void> {
  shared.stage = "draining";
  const drained = Promise.all(workers.map((worker) => worker.drain(config.drainTimeoutMs)));
  await Promise.race([drained, Bun.sleep(config.drainTimeoutMs * DRAIN_SHARE)]);
}

const config = configOrExit();
const memory = allocateShared(COUNTERS);
const shared = new Shared(memory, config);
const workers = await startWorkers(config, memory);

let isDraining = false;
const end = (): void => {
  if (isDraining) return;
  isDraining = true;
  drainAll(config, shared, workers).then(() => process.exit(0), die);
};
process.on("SIGTERM", end);
process.on("SIGINT", end);

console.log(startLine(config.port, config.workerThreads));
// Only now /health says 200: every worker listens, and the versions are told.
shared.stage = "serving";
