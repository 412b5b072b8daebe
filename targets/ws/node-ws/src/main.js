// Starts the server: in this process with one worker, else in WORKER_THREADS processes under this one.

import cluster from "node:cluster";
import { readFileSync } from "node:fs";
import { ConfigError, readConfig } from "./config.js";
import { newCounts } from "./counts.js";
import { EchoServer } from "./server.js";
import { Asking, runPrimary } from "./workers.js";

/** @import { Config } from "./config.js" */
/** @import { ToPrimary, ToWorker } from "./workers.js" */

/** @returns {Config} */
function configOrExit() {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}

/** @param {Config} config */
function printStartLine({ port, workers }) {
  const manifest = new URL(import.meta.resolve("ws/package.json"));
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  const { node, v8, uv, llhttp } = process.versions;
  console.log(JSON.stringify({ runtime: `node ${node}`, libraries: { ws: version, v8, uv, llhttp }, port, workers }));
}

/** @param {unknown} error */
function fail(error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

/** @param {EchoServer} server */
function end(server) {
  server.drain().then(() => process.exit(0), fail);
}

/** @param {Config} config */
function runAlone(config) {
  const counts = newCounts();
  const server = new EchoServer(config, counts, () => Promise.resolve(counts));
  process.once("SIGTERM", () => end(server));
  process.once("SIGINT", () => end(server));
  server.listen().catch(fail);
}

/** @param {Config} config */
function runWorker(config) {
  const counts = newCounts();
  const asking = new Asking();
  const server = new EchoServer(config, counts, () => asking.total());
  process.on("message", (/** @type {ToWorker} */ message) => {
    if (message.type === "listen") server.listen().catch(fail);
    else if (message.type === "drain") end(server);
    else if (message.type === "gathered") asking.answered(message.id, message.counts);
    else process.send?.(/** @type {ToPrimary} */ ({ type: "counts", id: message.id, counts }));
  });
  // A signal to the whole process group comes here, too; the primary says when to drain.
  process.on("SIGTERM", () => {});
  process.on("SIGINT", () => {});
  process.send?.(/** @type {ToPrimary} */ ({ type: "up" }));
}

const config = configOrExit();
if (cluster.isWorker) {
  runWorker(config);
} else {
  printStartLine(config);
  if (config.workers === 1) runAlone(config);
  else runPrimary(config);
}
