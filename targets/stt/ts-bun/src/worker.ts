/** A further worker: the same server on the same port, on a thread of its own. */

import { parentPort, workerData } from "node:worker_threads";
import type { Config } from "./config.ts";
import { startWorker } from "./server.ts";
import type { SharedMemory } from "./shared.ts";

/** What the main thread hands over. */
export interface WorkerData {
  readonly config: Config;
  readonly memory: SharedMemory;
}

/** What the main thread asks, and what it is told. */
export type ToWorker = { readonly drainTimeoutMs: number };
export type FromWorker = "listening" | "drained";

const main = parentPort;
if (main === null) throw new Error("worker.ts is started by main.ts, as a thread");

const tell = (what: FromWorker): void => main.postMessage(what);
const { config, memory } = workerData as WorkerData;
const worker = startWorker(config, memory);
main.on("message", ({ drainTimeoutMs }: ToWorker) => {
  worker.drain(drainTimeoutMs).then(() => tell("drained"), fail);
});
tell("listening");

function fail(error: unknown): void {
  throw error;
}
