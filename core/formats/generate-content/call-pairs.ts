/**
 * Pairs the calls and results of one request. Ids are optional here: a call without one is numbered, a result without one answers the first
 * open call of its name. Every other format lives by ids.
 */
export class CallPairs {
  readonly #open: { readonly id: string; readonly name: string; readonly numbered: boolean }[] = [];
  #count = 0;

  /** The id of a call, its own or `call_<n>`. */
  call(name: string, id: string | undefined): string {
    const numbered = id === undefined || id === '';
    const called = numbered ? this.#number() : id;
    this.#open.push({ id: called, name, numbered });
    return called;
  }

  /** The call that a result answers. `id` undefined: by name, in order. The name is known when the call was seen. */
  result(
    name: string | undefined,
    id: string | undefined,
  ): { readonly id: string; readonly name: string | undefined } {
    const stated = id === '' ? undefined : id;
    const found =
      (stated === undefined ? undefined : this.#take((call) => call.id === stated)) ??
      this.#take((call) => call.name === name && (stated === undefined || call.numbered));
    if (found !== undefined) return { id: found.id, name: name ?? found.name };
    return { id: stated ?? this.#number(), name };
  }

  #take(
    fits: (call: { readonly id: string; readonly name: string; readonly numbered: boolean }) => boolean,
  ): { id: string; name: string } | undefined {
    const index = this.#open.findIndex(fits);
    return index < 0 ? undefined : this.#open.splice(index, 1)[0];
  }

  #number(): string {
    this.#count += 1;
    return `call_${this.#count}`;
  }
}
