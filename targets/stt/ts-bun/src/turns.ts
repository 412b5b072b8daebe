/** At most so many at a time; whoever comes when all places are taken waits, first come, first served. */
export class Turns {
  readonly #placesMax: number;
  #taken = 0;
  readonly #waiting: ((done: () => void) => void)[] = [];

  constructor(placesMax: number) {
    this.#placesMax = placesMax;
  }

  /** Calls `start` when a place is free. It is to call `done` when it needs the place no more; a second call does nothing. */
  take(start: (done: () => void) => void): void {
    if (this.#taken === this.#placesMax) {
      this.#waiting.push(start);
      return;
    }
    this.#taken++;
    let isDone = false;
    start(() => {
      if (isDone) return;
      isDone = true;
      this.#taken--;
      const next = this.#waiting.shift();
      if (next !== undefined) this.take(next);
    });
  }
}
