import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readConfig } from "../src/config.js";

test("the defaults are the contract's", () => {
  assert.deepEqual(readConfig({}), { port: 3000, workers: 1, drainTimeoutMs: 5000, maxMessageBytes: 1_048_576 });
});

for (const [name, value] of [
  ["PORT", "65536"],
  ["PORT", ""],
  ["PORT", " 80"],
  ["WORKER_THREADS", "0"],
  ["DRAIN_TIMEOUT_MS", "1.5"],
  ["MAX_MESSAGE_BYTES", "many\nmore"],
]) {
  test(`a bad ${name} (${JSON.stringify(value)}) is refused by name, in one line`, () => {
    assert.throws(
      () => readConfig({ [String(name)]: value }),
      (error) => error instanceof ConfigError && error.message.startsWith(`${name}=`) && !error.message.includes("\n"),
    );
  });
}
