// The contract of docs/ws/contract.md, over real sockets.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { BINARY, frame, RawSocket, start, Target, TEXT, until } from "./support.js";

/** @import { TestContext } from "node:test" */

const LIMIT = 1_048_576;
const FILL_BYTES = 16_384;
const ECHO_BYTES = 4 + FILL_BYTES;

/**
 * A server that ends with the test, however that ends.
 *
 * @param {TestContext} t
 * @param {Record<string, string>} env
 */
async function startFor(t, env = {}) {
  const target = await Target.start(env);
  t.after(() => target.kill());
  return target;
}

/**
 * A client that has stopped to read, and has sent what the server takes of it.
 *
 * @param {Target} target
 */
async function fill(target) {
  const raw = await RawSocket.upgrade(target.port);
  const one = frame(BINARY, Buffer.alloc(FILL_BYTES, 5));
  raw.socket.pause();
  let sent = 0;
  // Blocked for a second: the kernel's buffers are full, and so are the server's.
  for (let isBlocked = false; !isBlocked; ) {
    sent++;
    if (raw.socket.write(one)) continue;
    isBlocked = await Promise.race([
      once(raw.socket, "drain").then(() => false),
      new Promise((resolve) => {
        setTimeout(() => resolve(true), 1000);
      }),
    ]);
    assert.ok(sent * one.length < 128 * 1024 * 1024, "it reads on and on");
  }
  return { raw, sent };
}

describe("one worker", () => {
  /** @type {Target} */
  let target;

  before(async () => {
    target = await Target.start();
  });

  after(() => target.kill());

  test("the start line names versions", () => {
    const { runtime, libraries } = JSON.parse(target.output.split("\n", 1)[0] ?? "");
    assert.match(runtime, /^node \d+/);
    assert.match(libraries.ws, /^8\./);
  });

  test("messages come back as they were, in order", async () => {
    const client = await target.connect("/any/path?query=1");
    assert.equal(client.ws.extensions, "");
    const messages = ["", Buffer.alloc(0), "grüße", Buffer.from([0, 255]), "x".repeat(126), Buffer.alloc(LIMIT, 7)];
    for (const message of messages) client.ws.send(message);
    for (const message of messages) assert.deepEqual(await client.next(), message);
    client.ws.close();
  });

  test("fragments come back whole, and a ping between them is answered", async () => {
    const raw = await RawSocket.upgrade(target.port);
    const text = Buffer.from("hä");
    raw.socket.write(frame(TEXT, text.subarray(0, 2), { isFinal: false }));
    raw.socket.write(frame(9, Buffer.from("between")));
    raw.socket.write(frame(0, text.subarray(2)));
    const expected = Buffer.concat([Buffer.from([0x8a, 7]), Buffer.from("between"), Buffer.from([0x81, 3]), text]);
    await until(() => raw.bytes.length >= expected.length, "no answer");
    assert.deepEqual(raw.bytes, expected);
    raw.socket.destroy();
  });

  /** @type {[string, number, Buffer[]][]} */
  const violations = [
    ["a text that is not UTF-8", 1007, [frame(TEXT, Buffer.from([0xc3, 0x28]))]],
    ["a declared length over the limit", 1009, [frame(BINARY, Buffer.alloc(0), { length: LIMIT + 1 })]],
    [
      "fragments over the limit",
      1009,
      [frame(BINARY, Buffer.alloc(LIMIT), { isFinal: false }), frame(0, Buffer.alloc(1))],
    ],
    ["a reserved bit", 1002, [frame(BINARY, Buffer.alloc(0), { reserved: 4 })]],
    ["a bad opcode", 1002, [frame(3, Buffer.alloc(0))]],
    ["a continuation of nothing", 1002, [frame(0, Buffer.alloc(1))]],
    ["a fragmented ping", 1002, [frame(9, Buffer.alloc(0), { isFinal: false })]],
    ["an unmasked frame", 1002, [Buffer.from([0x81, 1, 0x78])]],
  ];
  for (const [name, code, frames] of violations) {
    test(`${name}: close ${code}`, async () => {
      const raw = await RawSocket.upgrade(target.port);
      for (const each of frames) raw.socket.write(each);
      assert.equal(await raw.closeCode(), code);
      raw.socket.destroy();
    });
  }

  test("a close is answered", async () => {
    const raw = await RawSocket.upgrade(target.port);
    raw.socket.write(frame(8, Buffer.from([0x0b, 0xb8])));
    assert.equal(await raw.closeCode(), 3000);
    await until(() => raw.isEnded, "the connection stays");
  });

  test("other requests", async () => {
    assert.equal(await (await target.get("/healthz")).text(), "ok");
    assert.match((await target.get("/metrics")).headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
    assert.equal(await target.status("/"), 426);
  });
});

test("messages and connections are counted", async (t) => {
  const target = await startFor(t);
  const client = await target.connect();
  for (const message of ["abc", "ü", Buffer.alloc(5)]) {
    client.ws.send(message);
    await client.next();
  }
  const refused = await RawSocket.upgrade(target.port, "/healthz");
  assert.match(refused.head, /^HTTP\/1\.1 400 /);
  // Not a request for a WebSocket, so it is not one that was refused.
  assert.equal(await target.status("/elsewhere"), 426);
  assert.equal(await target.metric("ws_messages_received_total"), 3);
  assert.equal(await target.metric("ws_bytes_received_total"), 10);
  assert.equal(await target.metric("ws_messages_sent_total"), 3);
  assert.equal(await target.metric("ws_connections_open"), 1);
  assert.equal(await target.metric("ws_connections_accepted_total"), 1);
  assert.equal(await target.metric("ws_connections_refused_total"), 1);
  client.ws.close();
  await target.waitFor("ws_connections_open", 0);
});

test("a client that does not read is not read from, and loses nothing", async (t) => {
  const target = await startFor(t);
  const { raw, sent } = await fill(target);
  assert.ok(target.rssMib() < 250);
  const other = await target.connect();
  other.ws.send("still here");
  assert.equal(await other.next(), "still here");
  raw.socket.resume();
  await until(() => raw.bytesRead === sent * ECHO_BYTES, "echoes are missing");
});

test("the hub reaches all, in the order of arrival", async (t) => {
  const target = await startFor(t);
  const [one, two, other] = await Promise.all([
    target.connect("/fanout"),
    target.connect("/fanout"),
    target.connect("/"),
  ]);
  for (let number = 0; number < 100; number++) {
    const sender = number % 3 === 0 ? two : one;
    sender.ws.send(String(number));
    // Both have seen it before the next is sent, so this is the order of arrival.
    assert.equal(await one.next(), String(number));
    assert.equal(await two.next(), String(number));
  }
  other.ws.send(Buffer.from([1]));
  assert.deepEqual(await other.next(), Buffer.from([1]));
  assert.equal(await target.metric("ws_messages_sent_total"), 201);
});

test("a slow receiver of the hub loses messages, and the others none", async (t) => {
  const count = 240;
  const target = await startFor(t);
  const slow = await RawSocket.upgrade(target.port, "/fanout");
  slow.socket.pause();
  const publisher = await target.connect("/fanout");
  for (let number = 0; number < count; number++) {
    const message = Buffer.alloc(256 * 1024);
    message.writeUInt32BE(number);
    publisher.ws.send(message);
    assert.deepEqual(await publisher.next(), message);
  }
  const dropped = await target.metric("ws_messages_dropped_total");
  assert.ok(dropped > 0);
  assert.equal((await target.metric("ws_messages_sent_total")) + dropped, 2 * count);
  assert.ok(target.rssMib() < 250);
  slow.socket.destroy();
});

test("several processes count together, and have no hub", async (t) => {
  const target = await startFor(t, { WORKER_THREADS: "2" });
  const clients = await Promise.all(Array.from({ length: 8 }, () => target.connect()));
  for (const client of clients) {
    client.ws.send("hello");
    assert.equal(await client.next(), "hello");
  }
  assert.equal(await target.metric("ws_messages_sent_total"), 8);
  assert.equal(await target.metric("ws_connections_open"), 8);
  const refused = await RawSocket.upgrade(target.port, "/fanout");
  assert.match(refused.head, /^HTTP\/1\.1 503 /);
  assert.equal(await target.metric("ws_connections_refused_total"), 1);
  target.child.kill("SIGTERM");
  assert.deepEqual(await Promise.all(clients.map((client) => client.closed)), Array(8).fill(1001));
  assert.equal(await target.exit, 0);
});

/** Holds back the second worker's start. */
const LATE_SECOND = `
  import cluster from "node:cluster";
  if (cluster.worker?.id === 2) await new Promise((resolve) => setTimeout(resolve, 700));
`;
const LATE = { WORKER_THREADS: "2", NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(LATE_SECOND)}` };

test("a worker that starts late hears what it is asked", { timeout: 10_000 }, async (t) => {
  const target = await startFor(t, LATE);
  assert.equal(await target.metric("ws_connections_open"), 0);
});

test("SIGTERM while a worker starts: exit code 0 at once", async (t) => {
  const child = start({ PORT: "1", DRAIN_TIMEOUT_MS: "30000", ...LATE });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  await sleep(200);
  const beganMs = performance.now();
  child.kill("SIGTERM");
  assert.deepEqual(await once(child, "exit"), [0, null]);
  assert.ok(performance.now() - beganMs < 5000);
});

test("SIGTERM closes with 1001 and waits for nobody", async (t) => {
  const target = await startFor(t, { DRAIN_TIMEOUT_MS: "2000" });
  const client = await target.connect();
  const silent = connect(target.port, "127.0.0.1").on("error", () => {});
  // It has not even asked for an upgrade; and the other does not read.
  silent.write("GET / HTTP/1.1\r\n");
  const deaf = await RawSocket.upgrade(target.port);
  deaf.socket.pause();
  const beganMs = performance.now();
  target.child.kill("SIGTERM");
  assert.equal(await client.closed, 1001);
  assert.equal(await target.exit, 0);
  assert.ok(performance.now() - beganMs < 2000);
  silent.destroy();
  deaf.socket.destroy();
});

test("SIGTERM: who reads late gets all echoes, then 1001", async (t) => {
  const target = await startFor(t);
  const { raw } = await fill(target);
  const echoes = await target.metric("ws_messages_sent_total");
  target.child.kill("SIGTERM");
  await sleep(300);
  raw.socket.resume();
  await until(() => raw.isEnded, "no end");
  const close = Buffer.from([0x88, 12, 0x03, 0xe9, ...Buffer.from("going away")]);
  assert.deepEqual(raw.bytes.subarray(-close.length), close);
  assert.equal(raw.bytesRead, echoes * ECHO_BYTES + close.length);
  assert.equal(await target.exit, 0);
});

test("a bad value: exit code 2, one line", async () => {
  const child = start({ MAX_MESSAGE_BYTES: "many" });
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const [code] = await once(child, "close");
  assert.equal(code, 2);
  assert.match(errors, /^MAX_MESSAGE_BYTES=.*\n$/);
});
