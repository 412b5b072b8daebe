/** Why a range of frames has no transcript: the rows of the contract's error table. */

interface Row {
  readonly stage: "inference_request" | "inference_response_parse" | "input_buffer";
  readonly retryable: boolean;
}

const ROWS = {
  timeout: { stage: "inference_request", retryable: true },
  connection_reset: { stage: "inference_request", retryable: true },
  http_429: { stage: "inference_request", retryable: true },
  http_5xx: { stage: "inference_request", retryable: true },
  http_4xx: { stage: "inference_request", retryable: false },
  parse_error: { stage: "inference_response_parse", retryable: false },
  overflow: { stage: "input_buffer", retryable: false },
} as const satisfies Record<string, Row>;

export type FailureKind = keyof typeof ROWS;

/** All kinds, in the order of the table; metrics count by their place. */
export const FAILURE_KINDS = Object.keys(ROWS) as readonly FailureKind[];

/** `stage` and `retryable` of a kind. */
export function rowOf(kind: FailureKind): Row {
  return ROWS[kind];
}

/** A failure, and what is known about it. */
export interface Failure {
  readonly kind: FailureKind;
  /** For people. */
  readonly message: string;
  /** The HTTP status of the answer, where there was one. */
  readonly status: number | null;
}

/** Most characters of a message that quotes from elsewhere. */
const MESSAGE_CHARS_MAX = 200;

export function timedOut(): Failure {
  return { kind: "timeout", message: "no answer from inference in time", status: null };
}

export function connectionLost(cause: string): Failure {
  return {
    kind: "connection_reset",
    message: `inference connection: ${cause}`.slice(0, MESSAGE_CHARS_MAX),
    status: null,
  };
}

/** An answer with a status other than 200. */
export function badStatus(status: number): Failure {
  return { kind: kindOfStatus(status), message: `inference answered with status ${status}`, status };
}

function kindOfStatus(status: number): FailureKind {
  if (status === 429) return "http_429";
  if (status >= 400 && status <= 499) return "http_4xx";
  if (status >= 500 && status <= 599) return "http_5xx";
  // Neither the promised answer nor an HTTP error: what came is not what the contract lets us parse.
  return "parse_error";
}

/** A 200 whose body is not the strict JSON. */
export function badAnswer(cause: string): Failure {
  return { kind: "parse_error", message: `inference answer: ${cause}`.slice(0, MESSAGE_CHARS_MAX), status: 200 };
}

export function overflowed(): Failure {
  return { kind: "overflow", message: "input buffer full, frames dropped", status: null };
}
