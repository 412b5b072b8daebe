/** A worker: a server on the gateway's port. The main thread has one, each further one a thread. */

import { parentPort, workerData } from "node:worker_threads";
import type { Config } from "./config.ts";
import { InferenceClient } from "./inference.ts";
import { limitsOf } from "./limits.ts";
import { Metrics } from "./metrics.ts";
import { type Gateway, startGateway } from "./server.ts";

export interface WorkerData {
  readonly config: Config;
  /** The number of the worker, from 0. */
  readonly worker: number;
  readonly limits: SharedArrayBuffer;
  readonly metrics: SharedArrayBuffer;
}

export type ToWorker = "drain";
export type FromWorker = "listening" | "drained";

export function startWorker({ config, worker, limits, metrics }: WorkerData): Gateway {
  return startGateway({
    config,
    metrics: new Metrics(metrics, worker),
    limits: limitsOf(limits, config),
    inference: new InferenceClient(config),
  });
}

/** On a thread: listens at once, and drains when told to. */
if (parentPort !== null) {
  const main = parentPort;
  const tell = (what: FromWorker): void => main.postMessage(what);
  const gateway = startWorker(workerData as WorkerData);
  main.on("message", async (_: ToWorker) => {
    await gateway.drain();
    tell("drained");
  });
  tell("listening");
}
