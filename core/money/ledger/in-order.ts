/**
 * Runs operations one after the other, in the order in which they are given. A renewal that the database took after the end of a reservation
 * would make that anew.
 */
export class InOrder {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
