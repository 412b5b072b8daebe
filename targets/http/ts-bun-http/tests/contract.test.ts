/** The contract of workload `http`, over real sockets. */

import { afterEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { crc32 } from "node:zlib";
import { type Environment, spawnTarget, Target } from "./support/target.ts";

const LIMIT = 1_048_576;
const PATTERN = Buffer.alloc(LIMIT, "0123456789abcdef");

const targets: Target[] = [];

afterEach(() => {
  for (const target of targets.splice(0)) target.process.kill("SIGKILL");
});

async function start(environment: Environment = {}): Promise<Target> {
  const target = await Target.start(environment);
  targets.push(target);
  return target;
}

function get(path: string, field = ""): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${field}\r\n`;
}

function post(body: string, path = "/sum"): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function sumOf(body: Uint8Array | string): string {
  return `${crc32(body).toString(16).padStart(8, "0")} ${body.length}`;
}

const LAST = get("/", "Connection: close\r\n");

describe("routes", () => {
  test("root, health, and their fields", async () => {
    const target = await start();
    for (const path of ["/", "/?query=1", "/healthz"]) {
      const answer = await target.get(path);
      expect([answer.status, await answer.text()]).toEqual([200, "ok"]);
      expect(answer.headers.get("content-type")).toStartWith("text/plain");
      expect(answer.headers.get("content-length")).toBe("2");
      expect(Date.parse(answer.headers.get("date") ?? "")).toBeGreaterThan(Date.now() - 5000);
    }
  });

  test("bytes of every size, and none beside", async () => {
    const target = await start();
    for (const size of [1, 2, 15, 16, 17, 4096, 65_536, LIMIT - 1, LIMIT]) {
      const answer = await target.get(`/bytes/${size}`);
      expect(answer.headers.get("content-type")).toBe("application/octet-stream");
      expect(PATTERN.subarray(0, size).equals(Buffer.from(await answer.arrayBuffer()))).toBeTrue();
    }
    for (const size of ["0", "01", "+1", "-1", "1.0", "1e2", "", "x", "1048577", "99999999999999999999"]) {
      expect([size, (await target.get(`/bytes/${size}`)).status]).toEqual([size, 404]);
    }
  });

  test("items as JSON", async () => {
    const target = await start();
    const cases = [
      [0, '{"id":0,"name":"item 0","even":true}'],
      [4711, '{"id":4711,"name":"item 4711","even":false}'],
      [Number.MAX_SAFE_INTEGER, '{"id":9007199254740991,"name":"item 9007199254740991","even":false}'],
    ] as const;
    for (const [number, json] of cases) {
      const answer = await target.get(`/json/${number}`);
      expect(await answer.text()).toBe(json);
      expect(answer.headers.get("content-type")).toStartWith("application/json");
    }
    for (const path of ["/json/9007199254740992", "/json/-1", "/json/00", "/json/"]) {
      expect((await target.get(path)).status).toBe(404);
    }
  });

  test("sums, and what is over the limit", async () => {
    const target = await start();
    for (const body of [Buffer.alloc(0), Buffer.from("123456789"), PATTERN]) {
      const answer = await fetch(`http://127.0.0.1:${target.port}/sum`, { method: "POST", body });
      expect(await answer.text()).toBe(sumOf(body));
    }
    const over = await target.raw(post("x".repeat(LIMIT + 1)));
    expect(over).toStartWith("HTTP/1.1 413 ");
    const chunked =
      "POST /sum HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;e=1\r\nde\r\n0\r\n\r\n";
    expect(await target.raw(chunked + LAST)).toContain(sumOf("abcde"));
  });

  test("HEAD has the fields of GET and no body; other methods and paths leave the connection", async () => {
    const target = await start();
    const head = (path: string): string => get(path).replace("GET", "HEAD");
    const answers = await target.raw(
      head("/") + head("/bytes/1048576") + head("/json/7") + get("/none") + post("abc", "/") + get("/sum") + LAST,
    );
    const statuses = [...answers.matchAll(/HTTP\/1\.1 ([0-9]+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(["200", "200", "200", "404", "404", "404", "200"]);
    expect(answers.toLowerCase().match(/^date: /gm)).toHaveLength(7);
    expect(answers.toLowerCase()).toContain("content-length: 1048576\r\n");
    expect(answers.toLowerCase()).not.toContain("transfer-encoding");
    expect(answers).toEndWith("\r\n\r\nok");
  });

  test("HTTP/2 by prior knowledge on the same port", async () => {
    const target = await start();
    const curl = Bun.spawn([
      "curl",
      "--silent",
      "--http2-prior-knowledge",
      "--write-out",
      " %{http_version}",
      `http://127.0.0.1:${target.port}/json/8`,
    ]);
    expect(await curl.stdout.text()).toBe('{"id":8,"name":"item 8","even":true} 2');
  });
});

describe("connections", () => {
  test("one serves a thousand requests, in order, and they are counted", async () => {
    const target = await start();
    const before = await target.metric("http_requests_total");
    const sizes = Array.from({ length: 999 }, (_, number) => (number % 16) + 1);
    const answers = await target.raw(sizes.map((size) => get(`/bytes/${size}`)).join("") + LAST);
    const bodies = answers.split(/HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n/).slice(1);
    expect(bodies).toEqual([...sizes.map((size) => PATTERN.toString("latin1", 0, size)), "ok"]);
    // The first look at the metrics came after itself was counted, and so did the second.
    expect(await target.metric("http_requests_total")).toBe(before + 1001);
  });

  test("GET, POST, GET in one write", async () => {
    const answers = await (await start()).raw(get("/bytes/3") + post("abc") + LAST);
    expect(answers).toMatch(new RegExp(`\r\n\r\n012HTTP[^]*\r\n\r\n${sumOf("abc")}HTTP[^]*\r\n\r\nok$`));
  });

  test("a request may come in pieces", async () => {
    const target = await start();
    const request = post("abc");
    for (let at = 1; at < request.length; at += 7) {
      const more = { afterMs: 5, data: request.slice(at) + LAST };
      expect(await target.raw(request.slice(0, at), more)).toContain(sumOf("abc"));
    }
  });

  test("HTTP/1.0 is answered and closed", async () => {
    expect(await (await start()).raw("GET / HTTP/1.0\r\n\r\n")).toEndWith("\r\n\r\nok");
  });
});

describe("life", () => {
  test("the start line names versions", async () => {
    const target = await start();
    const chunk = await target.process.stdout.getReader().read();
    const { runtime, libraries } = JSON.parse(new TextDecoder().decode(chunk.value).split("\n")[0] ?? "");
    expect(runtime).toStartWith("bun 1.");
    expect(libraries.webkit).toBeString();
  });

  test("two workers count together", async () => {
    const target = await start({ WORKER_THREADS: "2" });
    const before = await target.metric("http_requests_total");
    for (let number = 0; number < 40; number++) expect(await target.raw(LAST)).toEndWith("ok");
    expect(await target.metric("http_requests_total")).toBe(before + 41);
  });

  test("SIGTERM: what is in flight is answered and closed, idle ones are closed", async () => {
    const target = await start();
    const idle = connect(target.port, "127.0.0.1");
    idle.on("error", () => {});
    idle.write(get("/"));
    const body = "x".repeat(1000);
    const request = post(body);
    const answer = target.raw(request.slice(0, -500), { afterMs: 600, data: request.slice(-500) });
    await Bun.sleep(200);
    const beganMs = performance.now();
    target.process.kill("SIGTERM");
    expect(await answer).toEndWith(sumOf(body));
    expect((await answer).toLowerCase()).toContain("connection: close\r\n");
    expect(await target.process.exited).toBe(0);
    expect(performance.now() - beganMs).toBeLessThan(2000);
    expect(await target.get("/").catch(() => undefined)).toBeUndefined();
  });

  test("SIGTERM waits for nobody longer than DRAIN_TIMEOUT_MS", async () => {
    const target = await start({ DRAIN_TIMEOUT_MS: "1000" });
    const silent = connect(target.port, "127.0.0.1");
    silent.on("error", () => {});
    silent.write(post("abc").slice(0, -1));
    await Bun.sleep(100);
    const beganMs = performance.now();
    target.process.kill("SIGTERM");
    expect(await target.process.exited).toBe(0);
    expect(performance.now() - beganMs).toBeLessThan(1000);
  });

  test("a bad value: exit code 2, one line", async () => {
    const bad = spawnTarget({ MAX_BODY_BYTES: "many" });
    expect(await bad.exited).toBe(2);
    expect(await bad.stderr.text()).toMatch(/^MAX_BODY_BYTES=.*\n$/);
  });
});
