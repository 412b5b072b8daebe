// The server as a process, and a socket that writes frames which a library would not.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";

/** @import { ChildProcess } from "node:child_process" */
/** @import { AddressInfo, Socket } from "node:net" */
/** @import { RawData } from "ws" */

const MAIN = fileURLToPath(new URL("../src/main.js", import.meta.url));

const WAIT_MS = 5000;

/** The newest of what a raw socket has read. */
const KEPT_BYTES = 65_536;

export const TEXT = 1;
export const BINARY = 2;

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
   * @param {ChildProcess} child
   */
  constructor(port, child) {
    this.port = port;
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
    const unused = createServer().listen(0, "127.0.0.1");
    await once(unused, "listening");
    const { port } = /** @type {AddressInfo} */ (unused.address());
    unused.close();
    await once(unused, "close");
    const target = new Target(port, start({ PORT: String(port), ...env }));
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
    const text = await (await this.get("/metrics")).text();
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

  rssMib() {
    const status = readFileSync(`/proc/${this.child.pid}/status`, "utf8");
    return Number(/VmRSS:\s+([0-9]+)/.exec(status)?.[1]) / 1024;
  }

  /** @param {string} path */
  async connect(path = "/") {
    // Offers compression, which must not be taken up.
    const client = new Client(new WebSocket(`ws://127.0.0.1:${this.port}${path}`, { perMessageDeflate: true }));
    await once(client.ws, "open");
    return client;
  }

  kill() {
    this.child.kill("SIGKILL");
  }
}

/** The `ws` package's client, with what it has received. */
export class Client {
  /** @type {(string | Buffer)[]} */
  #received = [];

  /** @param {WebSocket} ws */
  constructor(ws) {
    this.ws = ws;
    /** @type {Promise<number>} */
    this.closed = new Promise((resolve) => {
      ws.on("close", (code) => resolve(code));
    });
    // A target that is killed resets it.
    ws.on("error", () => {});
    ws.on("message", (/** @type {RawData} */ data, isBinary) => {
      const message = /** @type {Buffer} */ (data);
      this.#received.push(isBinary ? message : message.toString());
    });
  }

  /** The next message: a string if it came as a text. */
  async next() {
    await until(() => this.#received.length > 0, "no message comes", 1);
    return this.#received.shift();
  }
}

/** A socket that has asked for an upgrade, and reads only when told to. */
export class RawSocket {
  /** @param {Socket} socket */
  constructor(socket) {
    this.socket = socket;
    this.head = "";
    this.bytes = Buffer.alloc(0);
    /** How much has come after the upgrade. */
    this.bytesRead = 0;
    this.isEnded = false;
    socket.on("data", (chunk) => {
      this.bytes = Buffer.concat([this.bytes, /** @type {Buffer} */ (chunk)]).subarray(-KEPT_BYTES);
      this.bytesRead += chunk.length;
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isEnded = true;
    });
  }

  /**
   * @param {number} port
   * @param {string} path
   */
  static async upgrade(port, path = "/") {
    const raw = new RawSocket(connect(port, "127.0.0.1"));
    const fields = [
      `GET ${path} HTTP/1.1`,
      "Host: localhost",
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    raw.socket.write(`${fields.join("\r\n")}\r\n\r\n`);
    await until(() => raw.bytes.includes("\r\n\r\n"), "no answer to the upgrade");
    const end = raw.bytes.indexOf("\r\n\r\n") + 4;
    raw.head = raw.bytes.subarray(0, end).toString("latin1");
    raw.bytes = raw.bytes.subarray(end);
    raw.bytesRead -= end;
    return raw;
  }

  /** The code of the close that comes next; NaN when the connection ends without one. */
  async closeCode() {
    await until(() => this.bytes.length >= 4 || this.isEnded, "no close comes", 1);
    return this.bytes[0] === 0x88 ? this.bytes.readUInt16BE(2) : Number.NaN;
  }
}

/**
 * A frame with a mask of zeros.
 *
 * @param {number} opcode
 * @param {Uint8Array} payload
 * @param {{ isFinal?: boolean, reserved?: number, length?: number }} options `length` is what it declares, if not the truth
 */
export function frame(opcode, payload, { isFinal = true, reserved = 0, length = payload.length } = {}) {
  const first = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  const mask = Buffer.alloc(4);
  if (length < 126) return Buffer.concat([Buffer.from([first, 0x80 | length]), mask, payload]);
  const head = Buffer.alloc(length < 65_536 ? 4 : 10);
  head[0] = first;
  if (length < 65_536) {
    head[1] = 0x80 | 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, mask, payload]);
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
