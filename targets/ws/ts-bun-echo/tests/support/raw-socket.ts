/** A socket that writes frames which a client library would not, and reads only when it is told to. */

import type { Socket } from "bun";
import { until } from "./target.ts";

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const KEPT_BYTES = 65_536;

interface FrameOptions {
  readonly isFinal?: boolean;
  readonly reservedBits?: number;
  /** Told in the header instead of the payload's own length. */
  readonly declaredLength?: number;
}

/** A frame with a mask of zeros. */
export function frame(opcode: number, payload: Uint8Array, options: FrameOptions = {}): Buffer {
  const { isFinal = true, reservedBits = 0, declaredLength = payload.length } = options;
  const first = (isFinal ? 0x80 : 0) | (reservedBits << 4) | opcode;
  const mask = Buffer.alloc(4);
  if (declaredLength < 126) return Buffer.concat([Buffer.from([first, 0x80 | declaredLength]), mask, payload]);
  const head = Buffer.alloc(declaredLength < 65_536 ? 4 : 10);
  head[0] = first;
  if (declaredLength < 65_536) {
    head[1] = 0x80 | 126;
    head.writeUInt16BE(declaredLength, 2);
  } else {
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(declaredLength), 2);
  }
  return Buffer.concat([head, mask, payload]);
}

export class RawSocket {
  /** The newest of what came after the upgrade. */
  bytes = Buffer.alloc(0);
  /** How much came after the upgrade. */
  bytesRead = 0;
  isEnded = false;
  head = "";
  #socket: Socket | undefined;
  #unwritten = Buffer.alloc(0);

  /** Connects and asks for an upgrade; the answer is in `head`. */
  static async upgrade(port: number, path = "/"): Promise<RawSocket> {
    const it = new RawSocket();
    await it.#connect(port);
    const fields = [
      `GET ${path} HTTP/1.1`,
      "Host: localhost",
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      "Sec-WebSocket-Extensions: permessage-deflate",
    ];
    it.write(Buffer.from(`${fields.join("\r\n")}\r\n\r\n`));
    await until(() => it.bytes.includes("\r\n\r\n"), "no answer to the upgrade");
    const end = it.bytes.indexOf("\r\n\r\n") + 4;
    it.head = it.bytes.subarray(0, end).toString("latin1");
    it.bytes = it.bytes.subarray(end);
    it.bytesRead = it.bytes.length;
    return it;
  }

  /** Writes all of it, sooner or later: what the kernel does not take at once follows when it does. */
  write(bytes: Uint8Array): void {
    this.#unwritten = Buffer.concat([this.#unwritten, bytes]);
    this.#writeOn();
  }

  get isFull(): boolean {
    return this.#unwritten.length > 0;
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  end(): void {
    this.#socket?.end();
  }

  /** The code of the close that comes next; undefined when the connection ends without one. */
  async closeCode(): Promise<number | undefined> {
    await until(() => this.bytes.length >= 4 || this.isEnded, "no close comes", 1);
    return this.bytes[0] === (0x80 | OPCODE.close) ? this.bytes.readUInt16BE(2) : undefined;
  }

  async #connect(port: number): Promise<void> {
    this.#socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_, data) => this.#onBytes(data),
        drain: () => this.#writeOn(),
        close: () => this.#onClose(),
        error: () => this.#onClose(),
      },
    });
  }

  #writeOn(): void {
    if (this.#unwritten.length === 0) return;
    this.#unwritten = this.#unwritten.subarray(Math.max(0, this.#socket?.write(this.#unwritten) ?? 0));
  }

  #onBytes(data: Uint8Array): void {
    this.bytesRead += data.length;
    this.bytes = Buffer.concat([this.bytes, data]).subarray(-KEPT_BYTES);
  }

  #onClose(): void {
    this.isEnded = true;
  }
}
