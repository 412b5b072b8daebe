// Several processes: a primary that starts workers, gathers their counts, and passes the end on.

import cluster from "node:cluster";
import { sum } from "./counts.js";

/** @import { Worker } from "node:cluster" */
/** @import { Config } from "./config.js" */
/** @import { Counts } from "./counts.js" */

/** @typedef {{ type: "up" } | { type: "gather", id: number } | { type: "counts", id: number, counts: Counts }} ToPrimary */
/** @typedef {{ type: "listen" } | { type: "drain" } | { type: "count", id: number } | { type: "gathered", id: number, counts: Counts }} ToWorker */

/** The share of the drain's time after which a worker that is still there is killed. */
const KILL_SHARE = 0.9;

/** In the primary: the counts of all workers, for the one that was asked. */
export class Gathering {
  /** @type {Map<number, { missing: Set<Worker>, counts: Counts[], reply: (counts: Counts) => void }>} */
  #pending = new Map();
  #lastId = 0;

  /**
   * @param {Iterable<Worker>} workers
   * @param {(counts: Counts) => void} reply
   */
  begin(workers, reply) {
    this.#lastId++;
    const id = this.#lastId;
    this.#pending.set(id, { missing: new Set(workers), counts: [], reply });
    for (const worker of workers) tell(worker, { type: "count", id });
  }

  /**
   * @param {number} id
   * @param {Worker} worker
   * @param {Counts} counts
   */
  add(id, worker, counts) {
    const gathering = this.#pending.get(id);
    if (!gathering?.missing.delete(worker)) return;
    gathering.counts.push(counts);
    this.#endIfComplete(id);
  }

  /** @param {Worker} worker one that will not answer any more */
  forget(worker) {
    for (const [id, { missing }] of this.#pending) {
      if (missing.delete(worker)) this.#endIfComplete(id);
    }
  }

  /** @param {number} id */
  #endIfComplete(id) {
    const gathering = this.#pending.get(id);
    if (gathering === undefined || gathering.missing.size > 0) return;
    this.#pending.delete(id);
    gathering.reply(sum(gathering.counts));
  }
}

/** In a worker: asks the primary for the counts of all. */
export class Asking {
  /** @type {Map<number, (counts: Counts) => void>} */
  #pending = new Map();
  #lastId = 0;

  /** @returns {Promise<Counts>} */
  total() {
    return new Promise((resolve) => {
      this.#lastId++;
      this.#pending.set(this.#lastId, resolve);
      process.send?.(/** @type {ToPrimary} */ ({ type: "gather", id: this.#lastId }));
    });
  }

  /**
   * @param {number} id
   * @param {Counts} counts
   */
  answered(id, counts) {
    this.#pending.get(id)?.(counts);
    this.#pending.delete(id);
  }
}

/** @param {Config} config */
export function runPrimary(config) {
  /** @type {Set<Worker>} */
  const workers = new Set();
  const gathering = new Gathering();
  let isDraining = false;
  let missing = config.workers;
  // A message to a worker that is still starting is lost. So nobody serves, and nothing is asked, before all are up.
  const countUp = () => {
    missing--;
    if (missing === 0) for (const worker of workers) tell(worker, { type: "listen" });
  };
  const end = () => {
    isDraining = true;
    if (missing > 0) {
      for (const worker of workers) worker.process.kill("SIGKILL");
      process.exit(0);
    }
    for (const worker of workers) tell(worker, { type: "drain" });
    setTimeout(() => {
      for (const worker of workers) worker.process.kill("SIGKILL");
      process.exit(0);
    }, config.drainTimeoutMs * KILL_SHARE);
  };
  process.once("SIGTERM", end);
  process.once("SIGINT", end);

  for (let number = 0; number < config.workers; number++) {
    const worker = cluster.fork();
    workers.add(worker);
    worker.on("message", (/** @type {ToPrimary} */ message) => {
      if (message.type === "up") {
        countUp();
      } else if (message.type === "counts") {
        gathering.add(message.id, worker, message.counts);
      } else {
        const { id } = message;
        gathering.begin(workers, (counts) => tell(worker, { type: "gathered", id, counts }));
      }
    });
    worker.on("exit", (code, signal) => {
      workers.delete(worker);
      gathering.forget(worker);
      // Its connections and counts are gone with it: better a restart than a server that is half there.
      if (!isDraining) {
        console.error(`a worker ended (${signal ?? code})`);
        process.exit(1);
      }
      if (workers.size === 0) process.exit(0);
    });
  }
}

/**
 * @param {Worker} worker
 * @param {ToWorker} message
 */
function tell(worker, message) {
  if (worker.isConnected()) worker.send(message, () => {});
}
