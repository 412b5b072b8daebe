/** What needs no server. */

import { describe, expect, test } from "bun:test";
import { ConfigError, readConfig } from "../src/config.ts";
import { Counters } from "../src/counters.ts";

describe("configuration", () => {
  test("the defaults are the contract's", () => {
    expect(readConfig({})).toEqual({ port: 3000, workerThreads: 1, drainTimeoutMs: 5000, bodyBytesMax: 1_048_576 });
  });

  const bad: readonly [string, string][] = [
    ["PORT", "65536"],
    ["PORT", ""],
    ["PORT", " 80"],
    ["WORKER_THREADS", "0"],
    ["DRAIN_TIMEOUT_MS", "1.5"],
    ["MAX_BODY_BYTES", "many\nmore"],
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

test("requests are summed over workers, and shown from the start", () => {
  const memory = Counters.allocate(3);
  const first = new Counters(memory, 0);
  expect(first.render()).toBe("# TYPE http_requests_total counter\nhttp_requests_total 0\n");
  first.countRequest();
  new Counters(memory, 2).countRequest();
  expect(first.render()).toEndWith("\nhttp_requests_total 2\n");
});
