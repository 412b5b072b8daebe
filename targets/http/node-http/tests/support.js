// The server as a process, and sockets that write what no client would.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** @import { ChildProcess } from "node:child_process" */
/** @import { AddressInfo } from "node:net" */

const MAIN = fileURLToPath(new URL("../src/main.js", import.meta.url));

const WAIT_MS = 5000;

/** @param {Record<string, string>} env */
export function start(env) {
  return spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

export class Target {
  /**
   * @param {number} port
   * @param {number} h2Port
   * @param {ChildProcess} child
   */
  constructor(port, h2Port, child) {
    this.port = port;
    this.h2Port = h2Port;
    this.child = child;
    this.output = "";
    child.stdout?.on("data", (chunk) => {
      this.output += chunk;
    });
    child.stderr?.pipe(process.stderr);
    /** @type {Promise<number | null>} */
    this.exit = once(child, "exit").then(([code]) => code);
  }

  /** @param {Record<string, string>} env */
  static async start(env = {}) {
    const port = await freePort();
    const h2Port = await freePort();
    const target = new Target(port, h2Port, start({ PORT: String(port), H2_PORT: String(h2Port), ...env }));
    try {
      await until(async () => (await target.status("/healthz").catch(() => 0)) === 200, "it does not get ready");
    } catch (error) {
      target.kill();
      throw error;
    }
    return target;
  }

  /** @param {string} path */
  get(path) {
    return fetch(`http://127.0.0.1:${this.port}${path}`);
  }

  /** @param {string} path */
  async status(path) {
    const response = await this.get(path);
    await response.arrayBuffer();
    return response.status;
  }

  /** @param {string} name */
  async metric(name) {
    // On a connection of its own, which counts itself and nothing more.
    const text = await this.raw("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const line = text.split("\n").find((each) => each.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1));
  }

  /**
   * @param {string} name
   * @param {number} value
   */
  async waitFor(name, value) {
    await until(async () => (await this.metric(name)) === value, `${name} does not become ${value}`);
  }

  /**
   * Writes `data`, and `more` a while later; returns all that comes until the server closes.
   *
   * @param {string} data
   * @param {{ afterMs: number, data: string }} [more]
   */
  async raw(data, more) {
    const socket = connect(this.port, "127.0.0.1");
    /** @type {Buffer[]} */
    const chunks = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.write(data);
    if (more !== undefined) setTimeout(() => socket.write(more.data), more.afterMs);
    await once(socket, "close");
    return Buffer.concat(chunks).toString("latin1");
  }

  kill() {
    this.child.kill("SIGKILL");
  }
}

async function freePort() {
  const unused = createServer().listen(0, "127.0.0.1");
  await once(unused, "listening");
  const { port } = /** @type {AddressInfo} */ (unused.address());
  unused.close();
  await once(unused, "close");
  return port;
}

/**
 * @param {() => boolean | Promise<boolean>} isTrue
 * @param {string} complaint
 * @param {number} pauseMs
 */
export async function until(isTrue, complaint, pauseMs = 20) {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadlineMs) throw new Error(complaint);
    await sleep(pauseMs);
  }
}
