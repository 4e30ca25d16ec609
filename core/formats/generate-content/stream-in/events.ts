import type { Logprob } from '../../../model/chat.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra } from '../../../model/extra.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { formatName } from '../wire.ts';

/** The events that one chunk makes, in order. Until it is taken, later fields of the chunk can still be put on them. */
export class ChunkEvents {
  #out: GatewayEvent[] = [];
  /** Indexes in `#out` of events from which an encoder writes a chunk. */
  #producers: number[] = [];

  /** Types of events without a chunk of their own in this format: starts, ends, usage. */
  push(event: GatewayEvent): void {
    this.#out.push(event);
  }

  /** Adds an event for which this format's encoder writes something. */
  produce(event: GatewayEvent): void {
    this.#producers.push(this.#out.push(event) - 1);
  }

  get produced(): number {
    return this.#producers.length;
  }

  /** Number of collected events. */
  get length(): number {
    return this.#out.length;
  }

  /** Ends the chunk: the events that follow are of another one. */
  settle(): void {
    this.#producers = [];
  }

  take(): readonly GatewayEvent[] {
    const events = this.#out;
    this.#out = [];
    this.#producers = [];
    return events;
  }

  /** Adds fields to the last event with a chunk after the first `from`. Returns false if there is none. */
  attach(fields: JsonObject, from: number): boolean {
    const at = this.#producers.length > from ? this.#producers.at(-1) : undefined;
    if (at === undefined || this.#out[at]?.type === 'opaque') return false;
    this.#extend(at, fields);
    return true;
  }

  /** Adds tokens and the original result to the first text after the first `from` producers. Returns false when there is no text. */
  attachLogprobs(tokens: readonly Logprob[], verbatim: JsonValue | undefined, from: number): boolean {
    const at = this.#producers.slice(from).find((index) => this.#out[index]?.type === 'text-delta');
    const event = at === undefined ? undefined : this.#out[at];
    if (at === undefined || event?.type !== 'text-delta') return false;
    this.#out[at] = { ...event, logprobs: tokens };
    this.#extend(at, { logprobsResult: verbatim });
    return true;
  }

  /** Says of every producer that the next one was in the same chunk; of the last one only when a finish is still to come. */
  markTogether(finishFollows: boolean): void {
    const marked = finishFollows ? this.#producers : this.#producers.slice(0, -1);
    for (const at of marked) {
      const event = this.#out[at];
      if (event?.type === 'opaque') this.#out[at] = { ...event, value: { ...event.value, $more: true } };
      else this.#extend(at, { $more: true });
    }
  }

  #extend(at: number, fields: JsonObject): void {
    const event = this.#out[at];
    if (event === undefined) return;
    const before: Extra | undefined = 'extra' in event ? event.extra : undefined;
    const extra = { ...before, [formatName]: { ...before?.[formatName], ...fields } };
    this.#out[at] = { ...event, extra } as GatewayEvent;
  }
}
