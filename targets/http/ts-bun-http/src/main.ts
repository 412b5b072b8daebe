/** Reads the configuration, starts the workers, serves until SIGTERM or SIGINT, drains. */

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { Counters } from "./counters.ts";
import { HttpServer, type HttpWorker } from "./server.ts";
import { startLine } from "./versions.ts";
import type { FromWorker, WorkerData } from "./worker.ts";

/** The share of the drain's time after which the process ends, whatever is still open; the rest is for the exit. */
const DRAIN_SHARE = 0.9;

const EXIT_BAD_CONFIG = 2;

function configOrExit(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(EXIT_BAD_CONFIG);
  }
}

function die(message: unknown): never {
  console.error(message);
  process.exit(1);
}

/** A thread with a worker on it; resolves when that listens. */
async function startThread(workerData: WorkerData): Promise<HttpWorker> {
  const thread = new Worker(new URL("./worker.ts", import.meta.url), { workerData });
  // A worker that ends takes its connections with it; whoever supervises the server starts a whole one.
  thread.on("error", (error: unknown) => die(`a worker failed: ${String(error)}`));
  thread.on("exit", (code) => die(`a worker ended with ${code}`));
  const told = async (what: FromWorker): Promise<void> => {
    const [seen] = await once(thread, "message");
    if (seen !== what) die(`a worker said ${String(seen)} instead of ${what}`);
  };
  await told("listening");
  return {
    async drain() {
      const drained = told("drained");
      thread.postMessage("drain");
      await drained;
    },
  };
}

/** All workers. The main thread is the last of them, so with one worker there is no other thread. */
async function startWorkers(config: Config): Promise<readonly HttpWorker[]> {
  const memory = Counters.allocate(config.workerThreads);
  const last = config.workerThreads - 1;
  const others = await Promise.all(
    Array.from({ length: last }, (_, number) => startThread({ config, memory, number })),
  );
  try {
    // Its /healthz and those of the others say 200 from the start: they have listened for a while.
    return [...others, new HttpServer(config, memory, last)];
  } catch (error) {
    return die(`cannot listen on port ${config.port}: ${String(error)}`);
  }
}

async function drainAll(config: Config, workers: readonly HttpWorker[]): Promise<void> {
  const drained = Promise.all(workers.map((worker) => worker.drain()));
  await Promise.race([drained, Bun.sleep(config.drainTimeoutMs * DRAIN_SHARE)]);
}

const config = configOrExit();
console.log(startLine(config.port, config.workerThreads));
const starting = startWorkers(config);

let isDraining = false;
const end = (): void => {
  if (isDraining) return;
  isDraining = true;
  starting.then((workers) => drainAll(config, workers)).then(() => process.exit(0), die);
};
process.on("SIGTERM", end);
process.on("SIGINT", end);

await starting;
