/** A further worker: the same server on the same port, on a thread of its own. */

import { parentPort, workerData } from "node:worker_threads";
import type { Config } from "./config.ts";
import { HttpServer } from "./server.ts";

/** What the main thread hands over. */
export interface WorkerData {
  readonly config: Config;
  readonly memory: SharedArrayBuffer;
  readonly number: number;
}

/** What the main thread is told; all that it says itself is that this is the end. */
export type FromWorker = "listening" | "drained";

const main = parentPort;
if (main === null) throw new Error("worker.ts is started by main.ts, as a thread");

const tell = (what: FromWorker): void => main.postMessage(what);
const { config, memory, number } = workerData as WorkerData;
const worker = new HttpServer(config, memory, number);
main.on("message", () => {
  worker.drain().then(() => tell("drained"), fail);
});
tell("listening");

function fail(error: unknown): void {
  throw error;
}
