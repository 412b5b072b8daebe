import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { newCounts, render, sum } from "../src/counts.js";
import { Gathering } from "../src/workers.js";

/** @import { Worker } from "node:cluster" */
/** @import { Counts } from "../src/counts.js" */

test("metrics are sums over workers, and complete from the start", () => {
  const [one, other] = [newCounts(), newCounts()];
  one.requests = 3;
  other.requests = 2 ** 40;
  const text = render(sum([one, other]));
  assert.match(text, /^http_requests_total 1099511627779$/m);
  assert.match(text, /^# TYPE http_connections_open gauge\nhttp_connections_open 0$/m);
  assert.equal(text.match(/# TYPE/g)?.length, Object.keys(newCounts()).length);
});

/** @returns {Worker} one that hears and says nothing */
function silentWorker() {
  const worker = Object.assign(new EventEmitter(), { isConnected: () => true, send: () => true });
  return /** @type {Worker} */ (/** @type {unknown} */ (worker));
}

test("a gathering ends when every worker has answered, or has gone", () => {
  const workers = [silentWorker(), silentWorker(), silentWorker()];
  const [first, second, third] = /** @type {[Worker, Worker, Worker]} */ (workers);
  const gathering = new Gathering();
  /** @type {Counts[]} */
  const replies = [];
  gathering.begin(workers, (counts) => replies.push(counts));
  gathering.begin([first], (counts) => replies.push(counts));
  const counts = { ...newCounts(), open: 5 };
  gathering.add(1, first, counts);
  gathering.add(1, first, counts);
  gathering.add(1, third, counts);
  assert.equal(replies.length, 0);
  gathering.forget(second);
  assert.deepEqual(replies, [{ ...newCounts(), open: 10 }]);
  gathering.add(2, first, counts);
  assert.equal(replies.length, 2);
});
