/** The server as a process, and Bun's own WebSocket client. */

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

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

  async waitFor(name: string, value: number): Promise<void> {
    await until(async () => (await this.metric(name)) === value, `${name} does not become ${value}`);
  }

  async residentMib(): Promise<number> {
    const status = await Bun.file(`/proc/${this.process.pid}/status`).text();
    return Number(/VmRSS:\s+([0-9]+)/.exec(status)?.[1]) / 1024;
  }

  async connect(path = "/"): Promise<Client> {
    const client = new Client(new WebSocket(`ws://127.0.0.1:${this.port}${path}`));
    await client.opened;
    return client;
  }
}

/** What was received is kept until it is asked for. */
export class Client {
  readonly socket: WebSocket;
  readonly opened: Promise<void>;
  readonly closed: Promise<number>;
  readonly #received: (string | Buffer)[] = [];

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    const opened = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<number>();
    this.opened = opened.promise;
    this.closed = closed.promise;
    socket.addEventListener("open", () => opened.resolve());
    socket.addEventListener("close", ({ code }) => {
      opened.reject(new Error(`closed with ${code} instead of opened`));
      closed.resolve(code);
    });
    socket.addEventListener("message", ({ data }: MessageEvent<string | ArrayBuffer>) => {
      this.#received.push(typeof data === "string" ? data : Buffer.from(data));
    });
  }

  /** The next message: a string if it came as a text. */
  async next(): Promise<string | Buffer | undefined> {
    await until(() => this.#received.length > 0, "no message comes", 1);
    return this.#received.shift();
  }
}

export async function until(isTrue: () => boolean | Promise<boolean>, complaint: string, pauseMs = 20): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadlineMs) throw new Error(complaint);
    await Bun.sleep(pauseMs);
  }
}
