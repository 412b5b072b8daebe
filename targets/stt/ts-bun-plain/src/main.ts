/** Reads the configuration, starts the workers, serves until SIGTERM or SIGINT, drains. */

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { limitsMemory } from "./limits.ts";
import { metricsMemory } from "./metrics.ts";
import type { Gateway } from "./server.ts";
import { type FromWorker, startWorker, type ToWorker, type WorkerData } from "./worker.ts";

function configOrExit(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}

function startLine(): string {
  const { webkit = "unknown", node = "unknown" } = process.versions;
  const libraries = { webkit, node_compatibility: node };
  return JSON.stringify({ runtime: `bun ${Bun.version}`, revision: Bun.revision, libraries });
}

function die(message: string): never {
  console.error(message);
  process.exit(1);
}

/** A worker on a thread; resolves when that listens. */
async function startThread(workerData: WorkerData): Promise<Gateway> {
  const thread = new Worker(new URL("./worker.ts", import.meta.url), { workerData });
  // A worker that ends takes its sessions with it: better a restart than a gateway that is half there.
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
      thread.postMessage("drain" satisfies ToWorker);
      await drained;
    },
  };
}

const config = configOrExit();
console.log(startLine());
const shared = { config, limits: limitsMemory(), metrics: metricsMemory(config.workers) };
const threads = Array.from({ length: config.workers - 1 }, (_, index) => startThread({ ...shared, worker: index + 1 }));
// With `reusePort` the kernel spreads connections over those that listen.
const gateways = await Promise.all(threads);
gateways.push(startWorker({ ...shared, worker: 0 }));

let isDraining = false;
async function drain(): Promise<void> {
  if (isDraining) return;
  isDraining = true;
  await Promise.all(gateways.map((gateway) => gateway.drain()));
  process.exit(0);
}
process.on("SIGTERM", drain);
process.on("SIGINT", drain);
