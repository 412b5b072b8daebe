// The contract of workload `http`, over real sockets.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { start, Target } from "./support.js";

/** @import { TestContext } from "node:test" */

const LIMIT = 1_048_576;
const PATTERN = Buffer.alloc(LIMIT, "0123456789abcdef");

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
 * @param {string} path
 * @param {string} field
 */
function get(path, field = "") {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${field}\r\n`;
}

/**
 * @param {string} body
 * @param {string} path
 */
function post(body, path = "/sum") {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** @param {Buffer | string} body */
function sumOf(body) {
  return `${crc32(body).toString(16).padStart(8, "0")} ${body.length}`;
}

const LAST = get("/", "Connection: close\r\n");

/**
 * One exchange over HTTP/2.
 *
 * @param {Target} target
 * @param {Record<string, string>} fields
 * @param {Buffer} [body]
 */
async function exchange(target, fields, body) {
  const session = connectHttp2(`http://127.0.0.1:${target.h2Port}`);
  const stream = session.request(fields, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const [headers] = await once(stream, "response");
  /** @type {Buffer[]} */
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  session.close();
  return { headers, body: Buffer.concat(chunks) };
}

describe("routes of one worker", () => {
  /** @type {Target} */
  let target;

  before(async () => {
    target = await Target.start();
  });

  after(() => target.kill());

  test("the start line names versions", () => {
    const { runtime, libraries } = JSON.parse(target.output.split("\n", 1)[0] ?? "");
    assert.match(runtime, /^node \d+/);
    assert.match(libraries.nghttp2, /^1\./);
  });

  test("root, health, and their fields", async () => {
    for (const path of ["/", "/?query=1", "/healthz"]) {
      const answer = await target.get(path);
      assert.deepEqual([answer.status, await answer.text()], [200, "ok"]);
      assert.equal(answer.headers.get("content-type"), "text/plain");
      assert.equal(answer.headers.get("content-length"), "2");
      assert.ok(Date.parse(answer.headers.get("date") ?? "") > Date.now() - 5000);
    }
  });

  test("bytes of every size, and none beside", async () => {
    for (const size of [1, 2, 15, 16, 17, 4096, 65_536, LIMIT - 1, LIMIT]) {
      const answer = await target.get(`/bytes/${size}`);
      assert.equal(answer.headers.get("content-type"), "application/octet-stream");
      assert.ok(PATTERN.subarray(0, size).equals(Buffer.from(await answer.arrayBuffer())));
    }
    for (const size of ["0", "01", "+1", "-1", "1.0", "1e2", "", "x", "1048577", "99999999999999999999"]) {
      assert.equal(await target.status(`/bytes/${size}`), 404, size);
    }
  });

  test("items as JSON", async () => {
    const cases = /** @type {const} */ ([
      [0, '{"id":0,"name":"item 0","even":true}'],
      [4711, '{"id":4711,"name":"item 4711","even":false}'],
      [Number.MAX_SAFE_INTEGER, '{"id":9007199254740991,"name":"item 9007199254740991","even":false}'],
    ]);
    for (const [number, json] of cases) {
      const answer = await target.get(`/json/${number}`);
      assert.equal(await answer.text(), json);
      assert.equal(answer.headers.get("content-type"), "application/json");
    }
    for (const path of ["/json/9007199254740992", "/json/-1", "/json/00", "/json/"]) {
      assert.equal(await target.status(path), 404);
    }
  });

  test("sums, and what is over the limit", async () => {
    for (const body of [Buffer.alloc(0), Buffer.from("123456789"), PATTERN]) {
      const answer = await fetch(`http://127.0.0.1:${target.port}/sum`, { method: "POST", body });
      assert.equal(await answer.text(), sumOf(body));
    }
    const announced = `POST /sum HTTP/1.1\r\nHost: a\r\nContent-Length: ${LIMIT + 1}\r\n\r\n`;
    assert.match(await target.raw(announced), /^HTTP\/1\.1 413 .*\r\nconnection: close\r\n/is);
    const chunked = "POST /sum HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    const chunk = `100000\r\n${"x".repeat(LIMIT)}\r\n`;
    assert.match(await target.raw(chunked + chunk, { afterMs: 50, data: chunk }), /^(HTTP\/1\.1 413 |$)/);
    const answer = await target.raw(`${chunked}3\r\nabc\r\n2;e=1\r\nde\r\n0\r\n\r\n${LAST}`);
    assert.ok(answer.includes(sumOf("abcde")));
  });

  test("HEAD has the fields of GET and no body; other methods and paths leave the connection", async () => {
    const head = (/** @type {string} */ path) => get(path).replace("GET", "HEAD");
    const heads = head("/") + head("/bytes/1048576") + head("/json/7") + head("/none");
    const answers = await target.raw(heads + get("/none") + post("abc", "/") + get("/sum") + LAST);
    const statuses = [...answers.matchAll(/HTTP\/1\.1 ([0-9]+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ["200", "200", "200", "404", "404", "405", "405", "200"]);
    assert.equal(answers.match(/^date: /gim)?.length, statuses.length);
    assert.match(answers, /^content-length: 1048576\r$/im);
    assert.doesNotMatch(answers, /transfer-encoding/i);
    assert.match(answers, /\r\n\r\nok$/);
  });

  test("the same by HTTP/2", async () => {
    const item = await exchange(target, { ":path": "/json/8" });
    assert.equal(item.body.toString(), '{"id":8,"name":"item 8","even":true}');
    assert.equal(item.headers["content-length"], "36");
    assert.ok((await exchange(target, { ":path": "/bytes/1048576" })).body.equals(PATTERN));
    const sum = await exchange(target, { ":path": "/sum", ":method": "POST" }, PATTERN);
    assert.equal(sum.body.toString(), sumOf(PATTERN));
    assert.equal((await exchange(target, { ":path": "/bytes/0" })).headers[":status"], 404);
    const large = await exchange(target, { ":path": "/sum", ":method": "POST" }, Buffer.alloc(LIMIT + 1));
    assert.equal(large.headers[":status"], 413);
  });
});

describe("connections of one worker", () => {
  /** @type {Target} */
  let target;

  before(async () => {
    target = await Target.start();
  });

  after(() => target.kill());

  test("one connection serves a thousand requests, in order", async () => {
    const sizes = Array.from({ length: 999 }, (_, number) => (number % 16) + 1);
    const answers = await target.raw(sizes.map((size) => get(`/bytes/${size}`)).join("") + LAST);
    const bodies = answers.split(/HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n/).slice(1);
    assert.deepEqual(bodies, [...sizes.map((size) => PATTERN.toString("latin1", 0, size)), "ok"]);
  });

  test("GET, POST, GET in one write, and a request in pieces", async () => {
    const answers = await target.raw(get("/bytes/3") + post("abc") + LAST);
    assert.match(answers, new RegExp(`\r\n\r\n012HTTP.*\r\n\r\n${sumOf("abc")}HTTP.*\r\n\r\nok$`, "s"));
    const request = post("abc");
    for (let at = 1; at < request.length; at += 7) {
      const more = { afterMs: 5, data: request.slice(at) + LAST };
      assert.ok((await target.raw(request.slice(0, at), more)).includes(sumOf("abc")));
    }
  });

  test("what is behind a request that closes is not answered, and what is before it is", async () => {
    const answers = await target.raw(get("/bytes/1") + get("/bytes/2") + LAST + get("/bytes/3"));
    assert.match(answers, /\r\n\r\n0HTTP.*\r\n\r\n01HTTP.*\r\n\r\nok$/s);
    assert.match(await target.raw("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), /^HTTP\/1\.1 400 Bad Request\r\n/);
    const large = await target.raw(get("/", `X: ${"x".repeat(65_536)}\r\n`));
    assert.match(large, /^(HTTP\/1\.1 431 |$)/);
  });

  test("HTTP/1.0 is answered and closed", async () => {
    assert.match(await target.raw("GET / HTTP/1.0\r\n\r\n"), /\r\n\r\nok$/);
  });
});

test("requests and connections are counted", async (t) => {
  const target = await startFor(t);
  const before = await target.metric("http_requests_total");
  const accepted = await target.metric("http_connections_accepted_total");
  const open = await target.metric("http_connections_open");
  await target.raw(get("/") + get("/none") + LAST);
  await exchange(target, { ":path": "/" });
  assert.equal(await target.metric("http_requests_total"), before + 7);
  assert.equal(await target.metric("http_connections_accepted_total"), accepted + 5);
  const idle = connect(target.port, "127.0.0.1");
  await target.waitFor("http_connections_open", open + 1);
  idle.destroy();
  await target.waitFor("http_connections_open", open);
});

test("several processes count together", async (t) => {
  const target = await startFor(t, { WORKER_THREADS: "2" });
  const before = await target.metric("http_requests_total");
  for (let number = 0; number < 20; number++) assert.match(await target.raw(LAST), /ok$/);
  await exchange(target, { ":path": "/" });
  assert.equal(await target.metric("http_requests_total"), before + 22);
  target.child.kill("SIGTERM");
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
  assert.ok((await target.metric("http_requests_total")) > 0);
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

test("SIGTERM: what is in flight is answered and closed, idle connections are closed", async (t) => {
  const target = await startFor(t);
  const idle = connect(target.port, "127.0.0.1").on("error", () => {});
  idle.write(get("/"));
  const session = connectHttp2(`http://127.0.0.1:${target.h2Port}`);
  const stream = session.request({ ":path": "/sum", ":method": "POST" }, { endStream: false });
  stream.write("ab");
  const body = "x".repeat(1000);
  const request = post(body);
  const answer = target.raw(request.slice(0, -500), { afterMs: 600, data: request.slice(-500) });
  await sleep(200);
  const beganMs = performance.now();
  target.child.kill("SIGTERM");
  await sleep(200);
  stream.end("c");
  stream.setEncoding("latin1");
  assert.deepEqual(await stream.toArray(), [sumOf("abc")]);
  assert.ok((await answer).endsWith(sumOf(body)));
  assert.match(await answer, /^connection: close\r$/im);
  assert.equal(await target.exit, 0);
  assert.ok(performance.now() - beganMs < 2000);
  await assert.rejects(target.get("/"));
});

test("SIGTERM waits for nobody longer than DRAIN_TIMEOUT_MS", async (t) => {
  const target = await startFor(t, { DRAIN_TIMEOUT_MS: "1000" });
  const silent = connect(target.port, "127.0.0.1").on("error", () => {});
  silent.write(post("abc").slice(0, -1));
  await sleep(100);
  const beganMs = performance.now();
  target.child.kill("SIGTERM");
  assert.equal(await target.exit, 0);
  assert.ok(performance.now() - beganMs < 1000);
  silent.destroy();
});

test("a bad value: exit code 2, one line", async () => {
  for (const [name, value] of [
    ["MAX_BODY_BYTES", "many"],
    ["PORT", "65536"],
    ["WORKER_THREADS", "0"],
    ["DRAIN_TIMEOUT_MS", ""],
    ["H2_PORT", "-1\n"],
  ]) {
    const child = start({ [name ?? ""]: value ?? "" });
    let errors = "";
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    const [code] = await once(child, "close");
    assert.equal(code, 2);
    assert.match(errors, new RegExp(`^${name}=.*\n$`));
  }
});
