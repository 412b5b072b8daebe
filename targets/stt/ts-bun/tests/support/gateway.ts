/** The gateway as a process, and an inference server in this one. */

import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { referenceAnswer } from "./reference.ts";

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;

/** Answers every batch as the contract says, after a while. */
export async function startInference(delayMs: number): Promise<Http2Server> {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on("error", () => stream.destroy());
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", async () => {
      await Bun.sleep(delayMs);
      if (stream.closed) return;
      stream.respond({ ":status": 200 });
      stream.end(JSON.stringify(referenceAnswer(Buffer.concat(chunks), Number(headers["x-cpu-passes"]))));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

export function portOf(server: Http2Server): number {
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const server = createTcpServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

export interface Gateway {
  readonly port: number;
  readonly process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  get(path: string): Promise<Response>;
  /** The value of a sample in /metrics, by its name and labels as they are written there. */
  metric(sample: string): Promise<number>;
}

export function spawnGateway(environment: Readonly<Record<string, string>>): Gateway["process"] {
  return Bun.spawn([process.execPath, MAIN], {
    env: { PATH: process.env["PATH"], ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Starts a gateway and waits until it is ready. */
export async function startGateway(
  inference: Http2Server,
  environment: Readonly<Record<string, string>> = {},
): Promise<Gateway> {
  const port = await freePort();
  const child = spawnGateway({
    PORT: String(port),
    WORKER_THREADS: "2",
    INFERENCE_URL: `http://127.0.0.1:${portOf(inference)}`,
    ...environment,
  });
  const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
  const isReady = async (): Promise<boolean> => (await get("/health").catch(() => undefined))?.status === 200;
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(await child.stderr.text());
    await Bun.sleep(10);
  }
  const metric = async (sample: string): Promise<number> => {
    const lines = (await (await get("/metrics")).text()).split("\n");
    const line = lines.find((it) => it.startsWith(`${sample} `));
    return Number(line?.slice(sample.length + 1));
  };
  return { port, process: child, get, metric };
}
