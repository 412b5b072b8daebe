/** The contract of docs/ws/contract.md, over real sockets. */

import { afterEach, describe, expect, test } from "bun:test";
import { frame, OPCODE, RawSocket } from "./support/raw-socket.ts";
import { type Environment, spawnTarget, Target, until } from "./support/target.ts";

const LIMIT = 1_048_576;
const FILL_BYTES = 16_384;
const ECHO_BYTES = 4 + FILL_BYTES;
const NOTHING = new Uint8Array();

const targets: Target[] = [];

afterEach(() => {
  for (const target of targets.splice(0)) target.process.kill("SIGKILL");
});

async function start(environment: Environment = {}): Promise<Target> {
  const target = await Target.start(environment);
  targets.push(target);
  return target;
}

/** A client that has stopped to read, and has sent what the server takes of it. */
async function fill(target: Target): Promise<{ raw: RawSocket; sent: number }> {
  const raw = await RawSocket.upgrade(target.port);
  const one = frame(OPCODE.binary, Buffer.alloc(FILL_BYTES, 5));
  raw.pause();
  let sent = 0;
  // Full for a second: the kernel's buffers are, and so are the server's.
  for (let fullMs = 0; fullMs < 1000; ) {
    if (raw.isFull) {
      await Bun.sleep(20);
      fullMs += 20;
    } else {
      raw.write(one);
      sent++;
      fullMs = 0;
    }
    if (sent * one.length > 128 * 1024 * 1024) throw new Error("it reads on and on");
  }
  return { raw, sent };
}

describe("echo", () => {
  test("messages come back as they were, in order, without an extension", async () => {
    const target = await start();
    const client = await target.connect("/any/path?query=1");
    expect(client.socket.extensions).toBe("");
    const messages = ["", Buffer.alloc(0), "grüße", Buffer.from([0, 255]), "x".repeat(126), Buffer.alloc(LIMIT, 7)];
    for (const message of messages) client.socket.send(message);
    for (const message of messages) expect(await client.next()).toEqual(message);
    const raw = await RawSocket.upgrade(target.port);
    expect(raw.head).toStartWith("HTTP/1.1 101 ");
    expect(raw.head.toLowerCase()).not.toContain("sec-websocket-extensions");
    raw.end();
  });

  test("fragments come back whole, and a ping between them is answered", async () => {
    const raw = await RawSocket.upgrade((await start()).port);
    const text = Buffer.from("hä");
    raw.write(frame(OPCODE.text, text.subarray(0, 2), { isFinal: false }));
    raw.write(frame(OPCODE.ping, Buffer.from("between")));
    raw.write(frame(OPCODE.continuation, text.subarray(2)));
    const expected = Buffer.concat([Buffer.from([0x8a, 7]), Buffer.from("between"), Buffer.from([0x81, 3]), text]);
    await until(() => raw.bytes.length >= expected.length, "no answer");
    expect(raw.bytes).toEqual(expected);
    raw.end();
  });

  test("violations are closed with their code, and a close is answered", async () => {
    const { port } = await start();
    const cases: readonly [string, number, readonly Buffer[]][] = [
      ["a text that is not UTF-8", 1007, [frame(OPCODE.text, Buffer.from([0xc3, 0x28]))]],
      ["a declared length over the limit", 1009, [frame(OPCODE.binary, NOTHING, { declaredLength: LIMIT + 1 })]],
      [
        "fragments over the limit",
        1009,
        [frame(OPCODE.binary, Buffer.alloc(LIMIT), { isFinal: false }), frame(OPCODE.continuation, Buffer.alloc(1))],
      ],
      ["a reserved bit", 1002, [frame(OPCODE.binary, NOTHING, { reservedBits: 4 })]],
      ["a bad opcode", 1002, [frame(3, NOTHING)]],
      ["a continuation of nothing", 1002, [frame(OPCODE.continuation, Buffer.alloc(1))]],
      ["a fragmented ping", 1002, [frame(OPCODE.ping, NOTHING, { isFinal: false })]],
      ["an unmasked frame", 1002, [Buffer.from([0x81, 1, 0x78])]],
      ["a close", 3000, [frame(OPCODE.close, Buffer.from([0x0b, 0xb8]))]],
    ];
    for (const [name, code, frames] of cases) {
      const raw = await RawSocket.upgrade(port);
      for (const each of frames) raw.write(each);
      expect([name, await raw.closeCode()]).toEqual([name, code]);
      raw.end();
    }
  });

  test("a client that does not read is not read from, and loses nothing", async () => {
    const target = await start();
    const { raw, sent } = await fill(target);
    expect(await target.residentMib()).toBeLessThan(250);
    const other = await target.connect();
    other.socket.send("still here");
    expect(await other.next()).toBe("still here");
    raw.resume();
    await until(() => raw.bytesRead === sent * ECHO_BYTES, "echoes are missing");
    raw.end();
  }, 20_000);
});

describe("HTTP and counters", () => {
  test("the start line names versions", async () => {
    const target = await start();
    const chunk = await target.process.stdout.getReader().read();
    const { runtime, libraries } = JSON.parse(new TextDecoder().decode(chunk.value).split("\n")[0] ?? "");
    expect(runtime).toStartWith("bun 1.");
    expect(libraries.webkit).toBeString();
  });

  test("health, metrics and the rest", async () => {
    const target = await start();
    expect(await (await target.get("/healthz")).text()).toBe("ok");
    expect((await target.get("/metrics")).headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
    // Not a request for a WebSocket, so it is not one that was refused.
    expect((await target.get("/")).status).toBe(426);
    expect(await target.metric("ws_connections_refused_total")).toBe(0);
    expect((await RawSocket.upgrade(target.port, "/healthz")).head).not.toStartWith("HTTP/1.1 101");
    expect(await target.metric("ws_connections_refused_total")).toBe(1);
  });

  test("messages and connections are counted", async () => {
    const target = await start();
    const client = await target.connect();
    for (const message of ["abc", "ü", Buffer.alloc(5)]) {
      client.socket.send(message);
      await client.next();
    }
    expect(await target.metric("ws_messages_received_total")).toBe(3);
    expect(await target.metric("ws_bytes_received_total")).toBe(10);
    expect(await target.metric("ws_messages_sent_total")).toBe(3);
    expect(await target.metric("ws_connections_open")).toBe(1);
    expect(await target.metric("ws_connections_accepted_total")).toBe(1);
    client.socket.close();
    await target.waitFor("ws_connections_open", 0);
  });

  test("several workers count together, and have no hub", async () => {
    const target = await start({ WORKER_THREADS: "2" });
    const clients = await Promise.all(Array.from({ length: 8 }, () => target.connect()));
    for (const client of clients) {
      client.socket.send("hello");
      expect(await client.next()).toBe("hello");
    }
    expect(await target.metric("ws_messages_sent_total")).toBe(8);
    expect(await target.metric("ws_connections_open")).toBe(8);
    const refused = await RawSocket.upgrade(target.port, "/fanout");
    expect(refused.head).toStartWith("HTTP/1.1 503 ");
    expect(await target.metric("ws_connections_refused_total")).toBe(1);
    target.process.kill("SIGTERM");
    expect(await Promise.all(clients.map((client) => client.closed))).toEqual(Array.from({ length: 8 }, () => 1001));
    expect(await target.process.exited).toBe(0);
  });
});

describe("hub", () => {
  test("reaches all, in the order of arrival", async () => {
    const target = await start();
    const [one, two, other] = [
      await target.connect("/fanout"),
      await target.connect("/fanout"),
      await target.connect(),
    ];
    for (let number = 0; number < 100; number++) {
      const sender = number % 3 === 0 ? two : one;
      sender.socket.send(String(number));
      // Both have seen it before the next is sent, so this is the order of arrival.
      expect(await one.next()).toBe(String(number));
      expect(await two.next()).toBe(String(number));
    }
    other.socket.send(Buffer.from([1]));
    expect(await other.next()).toEqual(Buffer.from([1]));
    expect(await target.metric("ws_messages_sent_total")).toBe(201);
  });

  test("a slow receiver loses messages, and the others none", async () => {
    const count = 240;
    const target = await start();
    const slow = await RawSocket.upgrade(target.port, "/fanout");
    slow.pause();
    const publisher = await target.connect("/fanout");
    for (let number = 0; number < count; number++) {
      const message = Buffer.alloc(256 * 1024);
      message.writeUInt32BE(number);
      publisher.socket.send(message);
      expect(await publisher.next()).toEqual(message);
    }
    const dropped = await target.metric("ws_messages_dropped_total");
    expect(dropped).toBeGreaterThan(0);
    expect((await target.metric("ws_messages_sent_total")) + dropped).toBe(2 * count);
    expect(await target.residentMib()).toBeLessThan(300);
    slow.end();
  }, 20_000);
});

describe("the end", () => {
  test("SIGTERM closes with 1001 and waits for nobody", async () => {
    const target = await start({ DRAIN_TIMEOUT_MS: "2000" });
    const client = await target.connect();
    const deaf = await RawSocket.upgrade(target.port);
    deaf.pause();
    const beganMs = performance.now();
    target.process.kill("SIGTERM");
    expect(await client.closed).toBe(1001);
    expect(await target.process.exited).toBe(0);
    expect(performance.now() - beganMs).toBeLessThan(2000);
    deaf.end();
  });

  test("who reads late gets all echoes, then 1001", async () => {
    const target = await start();
    const { raw } = await fill(target);
    const echoes = await target.metric("ws_messages_sent_total");
    target.process.kill("SIGTERM");
    await Bun.sleep(300);
    raw.resume();
    expect(await target.process.exited).toBe(0);
    const close = Buffer.from([0x88, 12, 0x03, 0xe9, ...Buffer.from("going away")]);
    await until(() => raw.isEnded, "no end");
    expect(raw.bytes.subarray(-close.length)).toEqual(close);
    expect(raw.bytesRead).toBe(echoes * ECHO_BYTES + close.length);
  }, 20_000);

  test("a bad value: exit code 2, one line", async () => {
    const child = spawnTarget({ MAX_MESSAGE_BYTES: "many" });
    expect(await child.exited).toBe(2);
    expect(await child.stderr.text()).toMatch(/^MAX_MESSAGE_BYTES=.*\n$/);
    expect(await child.stdout.text()).toBe("");
  });
});
