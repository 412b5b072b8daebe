/** The line that the server prints on start. */

import manifest from "../package.json" with { type: "json" };

/** One JSON object on one line: what this server is made of. */
export function startLine(port: number, workerThreads: number): string {
  const { webkit = "unknown", mimalloc = "unknown" } = process.versions;
  return JSON.stringify({
    target: manifest.name,
    runtime: `bun ${Bun.version}`,
    revision: Bun.revision,
    libraries: { webkit, mimalloc },
    port,
    worker_threads: workerThreads,
  });
}
