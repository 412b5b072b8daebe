// The routes: what a request is answered with. HTTP/1.1 and HTTP/2 share them.

import { crc32 } from "node:zlib";

/** @import { IncomingMessage } from "node:http" */
/** @import { Http2ServerRequest } from "node:http2" */

/** @typedef {{ status: number, type: string, body: string | Buffer, isLast?: boolean }} Answer `isLast`: close after it */

const MAX_BYTES = 1_048_576;

/** The first N bytes of it are the answer to `/bytes/N`. */
const PATTERN = Buffer.alloc(MAX_BYTES, "0123456789abcdef");

const TEXT = "text/plain";

/**
 * The answer to what needs neither a body nor counts.
 *
 * @param {string} path
 * @param {boolean} isRead GET or HEAD
 * @returns {Answer}
 */
export function answer(path, isRead) {
  const found = find(path);
  if (found === undefined) return { status: 404, type: TEXT, body: "not found\n" };
  return isRead ? found : notAllowed();
}

/** @returns {Answer} */
export function notAllowed() {
  return { status: 405, type: TEXT, body: "method not allowed\n" };
}

/**
 * The sum of a body, which is not kept. No answer comes if the client goes away before its end.
 *
 * @param {IncomingMessage | Http2ServerRequest} request
 * @param {number} maxBytes
 * @param {(answer: Answer) => void} send called once
 */
export function sum(request, maxBytes, send) {
  let crc = 0;
  let length = Number(request.headers["content-length"] ?? 0) > maxBytes ? Number.POSITIVE_INFINITY : 0;
  const endIfTooLarge = () => {
    if (length <= maxBytes) return false;
    request.removeAllListeners("data").removeAllListeners("end");
    send({ status: 413, type: TEXT, body: "content too large\n", isLast: true });
    return true;
  };
  if (endIfTooLarge()) return;
  request.on("data", (/** @type {Buffer} */ chunk) => {
    length += chunk.length;
    if (!endIfTooLarge()) crc = crc32(chunk, crc);
  });
  request.on("end", () => {
    send({ status: 200, type: TEXT, body: `${crc.toString(16).padStart(8, "0")} ${length}` });
  });
}

/**
 * @param {string} path
 * @returns {Answer | undefined}
 */
function find(path) {
  if (path === "/" || path === "/healthz") return { status: 200, type: TEXT, body: "ok" };
  if (path.startsWith("/bytes/")) return bytes(path.slice("/bytes/".length));
  if (path.startsWith("/json/")) return json(path.slice("/json/".length));
  return undefined;
}

/**
 * @param {string} text
 * @returns {Answer | undefined}
 */
function bytes(text) {
  const size = wholeNumber(text, 1, MAX_BYTES);
  if (size === undefined) return undefined;
  return { status: 200, type: "application/octet-stream", body: PATTERN.subarray(0, size) };
}

/**
 * @param {string} text
 * @returns {Answer | undefined}
 */
function json(text) {
  const id = wholeNumber(text, 0, Number.MAX_SAFE_INTEGER);
  if (id === undefined) return undefined;
  const body = JSON.stringify({ id, name: `item ${id}`, even: id % 2 === 0 });
  return { status: 200, type: "application/json", body };
}

/**
 * The number that a part of a path is; nothing where it has leading zeros, signs or other characters.
 *
 * @param {string} text
 * @param {number} min
 * @param {number} max
 */
function wholeNumber(text, min, max) {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  const value = Number(text);
  return value >= min && value <= max ? value : undefined;
}
