/** The server as a process, and a socket that writes what no client would. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;

const WAIT_MS = 5000;

export type Environment = Readonly<Record<string, string>>;

export function spawnTarget(environment: Environment): Bun.Subprocess<"ignore", "pipe", "pipe"> {
  return Bun.spawn([process.execPath, MAIN], {
    env: { PATH: process.env["PATH"], ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

export class Target {
  readonly port: number;
  readonly process: Bun.Subprocess<"ignore", "pipe", "pipe">;

  private constructor(port: number, process: Bun.Subprocess<"ignore", "pipe", "pipe">) {
    this.port = port;
    this.process = process;
  }

  /** Starts it and waits until it is ready. */
  static async start(environment: Environment = {}): Promise<Target> {
    const port = await freePort();
    const target = new Target(port, spawnTarget({ PORT: String(port), ...environment }));
    await until(async () => {
      if (target.process.exitCode !== null) throw new Error(await target.process.stderr.text());
      return (await target.get("/healthz").catch(() => undefined))?.status === 200;
    }, "it does not get ready");
    return target;
  }

  get(path: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.port}${path}`);
  }

  async metric(name: string): Promise<number> {
    const lines = (await (await this.get("/metrics")).text()).split("\n");
    return Number(lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1));
  }

  /** Writes `data`, and `more` a while later; resolves with all that comes until the server closes. */
  async raw(data: string, more?: { afterMs: number; data: string }): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.write(data);
    if (more !== undefined) setTimeout(() => socket.write(more.data), more.afterMs);
    await once(socket, "close");
    return Buffer.concat(chunks).toString("latin1");
  }
}

export async function until(isTrue: () => boolean | Promise<boolean>, complaint: string, pauseMs = 20): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadlineMs) throw new Error(complaint);
    await Bun.sleep(pauseMs);
  }
}
