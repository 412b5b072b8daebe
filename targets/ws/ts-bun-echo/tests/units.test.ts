/** What needs no server. */

import { describe, expect, test } from "bun:test";
import { ConfigError, readConfig } from "../src/config.ts";
import { COUNTER, Counters } from "../src/counters.ts";

describe("configuration", () => {
  test("the defaults are the contract's", () => {
    expect(readConfig({})).toEqual({ port: 3000, workerThreads: 1, drainTimeoutMs: 5000, messageBytesMax: 1_048_576 });
  });

  const bad: readonly [string, string][] = [
    ["PORT", "65536"],
    ["PORT", ""],
    ["PORT", " 80"],
    ["WORKER_THREADS", "0"],
    ["DRAIN_TIMEOUT_MS", "1.5"],
    ["MAX_MESSAGE_BYTES", "many\nmore"],
  ];
  test.each(bad)("a bad %s (%j) is refused by name, in one line", (name, value) => {
    let seen: unknown;
    try {
      readConfig({ [name]: value });
    } catch (error) {
      seen = error;
    }
    expect(seen).toBeInstanceOf(ConfigError);
    expect(String(seen)).toMatch(new RegExp(`^ConfigError: ${name}=.*$`));
  });
});

describe("counters", () => {
  test("are sums over workers, and complete from the start", () => {
    const memory = Counters.allocate(3);
    const counters = new Counters(memory);
    counters.row(0).add(COUNTER.received, 3);
    new Counters(memory).row(2).add(COUNTER.received, 4);
    counters.row(1).add(COUNTER.receivedBytes, 2 ** 40);
    const text = counters.render();
    expect(text).toContain("\nws_messages_received_total 7\n");
    expect(text).toContain("\nws_bytes_received_total 1099511627776\n");
    expect(text).toStartWith("# TYPE ws_connections_open gauge\nws_connections_open 0\n");
    expect(text.match(/# TYPE/g)).toHaveLength(Object.keys(COUNTER).length);
  });
});
