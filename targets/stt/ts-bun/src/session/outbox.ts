/**
 * Messages that the client has not taken yet.
 *
 * The first may already be on its way into the socket; it stays unsent until the kernel has taken its last byte.
 */
export class Outbox {
  readonly #waiting: string[] = [];
  #sending = false;

  push(message: string): void {
    this.#waiting.push(message);
  }

  /** Messages that are not wholly with the kernel. */
  get unsent(): number {
    return this.#waiting.length + (this.#sending ? 1 : 0);
  }

  /** The next message to write, unless one is being written. It counts as unsent until {@link sent}. */
  next(): string | undefined {
    if (this.#sending) return undefined;
    // The array has a handful of places (OUTBOX_MESSAGES), so shifting it is cheap.
    const message = this.#waiting.shift();
    this.#sending = message !== undefined;
    return message;
  }

  /** What {@link next} gave has left. */
  sent(): void {
    this.#sending = false;
  }
}
