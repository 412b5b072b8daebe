// Records that try to become markup, wherever text from outside can appear.
import type { Json } from "./fixtures.js";

/** Ends a script, a comment, an attribute and an element, and adds code that would run. */
export const HOSTILE =
  "</script></title></svg>--><img src=x onerror=window.injected=1>\"'><svg onload=window.injected=1> &lt;b&gt; {{7*7}}";

/** The values of these keys are text from targets, servers, users' files and the machine. */
const FROM_OUTSIDE = new Set(
  (
    "name tier text conclusion explanation bottleneck failing_gate language description reason slo profile " +
    "isolation engine_backend plimsoll_version left_out search why target command_line"
  ).split(" "),
);
/** Everything below these keys is text from outside. */
const MAPS_FROM_OUTSIDE = new Set(["versions", "machine"]);
/** Lists of texts from outside. */
const LISTS_FROM_OUTSIDE = new Set(["failed_gates", "notes", "targets"]);

/** The record with the hostile text appended to every text from outside. */
export function hostile(record: Json): Json {
  return changed(record, "");
}

const tainted = (text: string) => `${text}${HOSTILE}`;

function changed(value: Json, key: string): Json {
  if (typeof value === "string") {
    // A comparison's conclusion is one of our words; a search's is a sentence.
    const ours = key === "conclusion" && !value.includes(" ");
    return FROM_OUTSIDE.has(key) && !ours ? tainted(value) : value;
  }
  if (Array.isArray(value)) {
    const texts = LISTS_FROM_OUTSIDE.has(key);
    return value.map((item) => (texts && typeof item === "string" ? tainted(item) : changed(item, key)));
  }
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value);
  if (MAPS_FROM_OUTSIDE.has(key)) {
    return Object.fromEntries(entries.map(([name, of]) => [tainted(name), tainted(String(of))]));
  }
  const result = Object.fromEntries(entries.map(([name, of]) => [name, changed(of, name)]));
  // Why sessions died, in the server's own words.
  if ("reasons" in result) result.reasons = { [tainted("closed: ")]: 3 };
  // A caveat's id, which names what casts doubt on a trial.
  if (typeof result.id === "string") result.id = tainted(result.id);
  return result;
}
