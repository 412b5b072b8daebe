/** A WebSocket client that may break every rule: it writes frames as they are asked for. */

import type { Socket } from "bun";

/** One frame to be sent, masked with a fixed mask unless that is what is wrong with it. */
export interface RawFrame {
  readonly opcode: number;
  readonly payload?: Uint8Array;
  readonly isFinal?: boolean;
  readonly isMasked?: boolean;
  readonly reservedBits?: number;
  /** Told in the header instead of the payload's own length. */
  readonly declaredLength?: number;
}

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const MASK = [0x12, 0x34, 0x56, 0x78] as const;

export function encodeFrame(frame: RawFrame): Buffer {
  const payload = frame.payload ?? new Uint8Array();
  const length = frame.declaredLength ?? payload.length;
  const isMasked = frame.isMasked ?? true;
  const head = Buffer.alloc(14);
  head[0] = ((frame.isFinal ?? true) ? 0x80 : 0) | ((frame.reservedBits ?? 0) << 4) | frame.opcode;
  let bytes = 2;
  if (length < 126) {
    head[1] = length;
  } else if (length < 65_536) {
    head[1] = 126;
    bytes = head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    bytes = head.writeBigUInt64BE(BigInt(length), 2);
  }
  if (!isMasked) return Buffer.concat([head.subarray(0, bytes), payload]);
  head[1] |= 0x80;
  const masked = payload.map((byte, place) => byte ^ (MASK[place % 4] ?? 0));
  return Buffer.concat([head.subarray(0, bytes), Buffer.from(MASK), masked]);
}

/** What came back, frame by frame: opcode and payload. */
export type Received = readonly [opcode: number, payload: Buffer];

export class RawSocket {
  #socket: Socket | undefined;
  #bytes = Buffer.alloc(0);
  #unwritten = Buffer.alloc(0);
  #isOpen = true;
  #wake = Promise.withResolvers<undefined>();

  /** Connects and writes an upgrade request; the answer's head is returned with the socket. */
  static async upgrade(port: number, headers: Readonly<Record<string, string>> = {}): Promise<[RawSocket, string]> {
    const it = new RawSocket();
    await it.#connect(port);
    const fields = Object.entries({
      host: "localhost",
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...headers,
    });
    it.write(`GET /ws/stt HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
    const end = await it.#until(() => {
      const place = it.#bytes.indexOf("\r\n\r\n");
      return place < 0 ? undefined : place + 4;
    });
    return [it, it.#take(end ?? it.#bytes.length).toString("latin1")];
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

  /** Writes all of it, sooner or later: what the kernel does not take at once follows when it does. */
  write(bytes: Uint8Array | string): void {
    const rest = Buffer.from(bytes);
    this.#unwritten = this.#unwritten.length === 0 ? rest : Buffer.concat([this.#unwritten, rest]);
    this.#writeOn();
  }

  /** Reads nothing until {@link resume}. */
  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  send(...frames: readonly RawFrame[]): void {
    this.write(Buffer.concat(frames.map(encodeFrame)));
  }

  /** The next frame; undefined at the end of the connection. */
  async next(): Promise<Received | undefined> {
    const size = await this.#until(() => frameSize(this.#bytes));
    if (size === undefined) return undefined;
    const frame = this.#take(size.head + size.payload);
    return [(frame[0] ?? 0) & 0x0f, frame.subarray(size.head)];
  }

  /** The code of the close that comes, past whatever else does; undefined when the connection ends without one. */
  async closeCode(): Promise<number | undefined> {
    for (;;) {
      const received = await this.next();
      if (received === undefined) return undefined;
      const [opcode, payload] = received;
      if (opcode === OPCODE.close) return payload.length >= 2 ? payload.readUInt16BE() : 1005;
    }
  }

  end(): void {
    this.#socket?.end();
  }

  #writeOn(): void {
    if (this.#unwritten.length === 0) return;
    this.#unwritten = this.#unwritten.subarray(Math.max(0, this.#socket?.write(this.#unwritten) ?? 0));
  }

  async #until<T>(look: () => T | undefined): Promise<T | undefined> {
    for (;;) {
      const found = look();
      if (found !== undefined || !this.#isOpen) return found;
      await this.#wake.promise;
    }
  }

  #take(bytes: number): Buffer {
    const taken = this.#bytes.subarray(0, bytes);
    this.#bytes = this.#bytes.subarray(bytes);
    return taken;
  }

  #onBytes(data: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, data]);
    this.#notify();
  }

  #onClose(): void {
    this.#isOpen = false;
    this.#notify();
  }

  #notify(): void {
    this.#wake.resolve(undefined);
    this.#wake = Promise.withResolvers();
  }
}

/** Sizes of the frame at the front, once it is whole. A server's frames are not masked. */
function frameSize(bytes: Buffer): { head: number; payload: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] ?? 0) & 0x7f;
  const head = short < 126 ? 2 : 4;
  if (bytes.length < head) return undefined;
  const payload = short < 126 ? short : bytes.readUInt16BE(2);
  return bytes.length < head + payload ? undefined : { head, payload };
}
