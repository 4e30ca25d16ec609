/** Pairs function calls with their responses, which may come without ids. */
interface OpenCall {
  readonly id: string;
  readonly name: string;
  readonly numbered: boolean;
  taken: boolean;
}

/**
 * Pairs the calls and results of one request. Ids are optional here: a call without one is numbered, a result without one answers the first
 * open call of its name. Every other format lives by ids.
 */
export class CallPairs {
  readonly #byId = new Map<string, Queue>();
  readonly #byName = new Map<string, Queue>();
  /** Calls of `byName` without an id from the client. */
  readonly #numbered = new Map<string, Queue>();
  #count = 0;

  /** Returns the id of a call, its own or `call_<n>`. */
  call(name: string, id: string | undefined): string {
    const numbered = id === undefined || id === '';
    const called = numbered ? this.#number() : id;
    const call: OpenCall = { id: called, name, numbered, taken: false };
    queueOf(this.#byId, called).add(call);
    queueOf(this.#byName, name).add(call);
    if (numbered) queueOf(this.#numbered, name).add(call);
    return called;
  }

  /** Returns the call that a result answers. `id` undefined: by name, in order. The name is known when the call was seen. */
  result(
    name: string | undefined,
    id: string | undefined,
  ): { readonly id: string; readonly name: string | undefined } {
    const stated = id === '' ? undefined : id;
    const found =
      (stated === undefined ? undefined : this.#byId.get(stated)?.take()) ??
      (name === undefined
        ? undefined
        : (stated === undefined ? this.#byName : this.#numbered).get(name)?.take());
    if (found !== undefined) return { id: found.id, name: name ?? found.name };
    return { id: stated ?? this.#number(), name };
  }

  #number(): string {
    this.#count += 1;
    return `call_${this.#count}`;
  }
}

/** Calls in their order. One that was taken out of another queue is passed over. */
class Queue {
  readonly #calls: OpenCall[] = [];
  #next = 0;

  add(call: OpenCall): void {
    this.#calls.push(call);
  }

  take(): OpenCall | undefined {
    while (this.#next < this.#calls.length) {
      const call = this.#calls[this.#next];
      this.#next += 1;
      if (call === undefined || call.taken) continue;
      call.taken = true;
      return call;
    }
    return undefined;
  }
}

function queueOf(queues: Map<string, Queue>, key: string): Queue {
  let queue = queues.get(key);
  if (queue === undefined) queues.set(key, (queue = new Queue()));
  return queue;
}
