/** The line that the gateway prints on start. */

import manifest from "../package.json" with { type: "json" };

/** One JSON object on one line: what this gateway is made of. */
export function startLine(port: number, workerThreads: number): string {
  const { webkit = "unknown", mimalloc = "unknown", node = "unknown" } = process.versions;
  return JSON.stringify({
    event: "start",
    gateway: manifest.name,
    version: manifest.version,
    runtime: `bun ${Bun.version}`,
    revision: Bun.revision,
    libraries: { webkit, mimalloc, node_compatibility: node },
    port,
    worker_threads: workerThreads,
  });
}
