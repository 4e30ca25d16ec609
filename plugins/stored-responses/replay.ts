/** Streams a stored response as events, and follows one that still runs until it ends. */
import { concat, concatMap, exhaustMap, from, takeWhile, timer, type Observable } from 'rxjs';
import { GatewayError, type GatewayEvent, type JsonObject } from 'sluice';
import { writeSse, type Codec, type ReplyContext } from 'sluice/channel-kit';
import type { StoredResponse } from './core-types.ts';
import { isRunning } from './seen.ts';

/** Milliseconds between two look-ups of a response that still runs. */
const LOOK_EVERY = 250;

/** Events with the whole response, which the replay writes itself. */
const lifecycle = /^response\.(created|queued|in_progress|completed|incomplete|failed)$/;

/** Options of {@link replay}. */
export interface Replay {
  /** Codec of the format's chat operation, which converts the stored object into events. */
  readonly codec: Codec;
  /** Sequence number after which events are sent; -1 for all. */
  readonly startingAfter: number;
  /** Returns the status of the response, and `alive` while a run may change it; undefined when it is deleted. */
  state(): Promise<{ readonly status: string; readonly alive: boolean } | undefined>;
  /** Returns the current response; rejects when it is deleted. */
  find(): Promise<StoredResponse>;
}

/**
 * Streams a stored response. One that still runs is followed, and its items are sent when it ends. A text is one delta, because deltas are not
 * stored. The last event is sent whatever `startingAfter` is, because it contains the whole response.
 */
export function replay(
  first: StoredResponse,
  { codec, startingAfter, state, find }: Replay,
): Observable<GatewayEvent> {
  const writer = new Writer(codec, startingAfter);
  const opening = writer.opening(first);
  if (!isRunning(first)) return from([...opening, ...writer.ending(first)]);
  const look = async (): Promise<{ readonly events: readonly GatewayEvent[]; readonly last: boolean }> => {
    const now = await state();
    if (now === undefined) throw new GatewayError('not_found', `Response with id '${first.id}' was deleted.`);
    if (!now.alive) return { events: writer.ending(await find()), last: true };
    return { events: now.status === 'in_progress' ? writer.beginning(first) : [], last: false };
  };
  const rest = timer(LOOK_EVERY, LOOK_EVERY).pipe(
    exhaustMap(look),
    takeWhile(({ last }) => !last, true),
    concatMap(({ events }) => events),
  );
  return concat(from(opening), rest);
}

/** Writes the events of one replay, numbered from 0. */
class Writer {
  readonly #codec: Codec;
  readonly #startingAfter: number;
  #number = 0;
  #begun = false;

  constructor(codec: Codec, startingAfter: number) {
    this.#codec = codec;
    this.#startingAfter = startingAfter;
  }

  opening(stored: StoredResponse): GatewayEvent[] {
    const { response } = stored;
    const status = response['status'] === 'queued' ? 'queued' : 'in_progress';
    const snapshot = unfinished(response, status);
    const created = this.#frames([{ type: 'response.created', response: snapshot }]);
    if (status === 'in_progress') return [...created, ...this.beginning(stored)];
    return [...created, ...this.#frames([{ type: 'response.queued', response: snapshot }])];
  }

  /** Returns the `in_progress` event at the first call, and nothing at later ones. */
  beginning({ response }: StoredResponse): GatewayEvent[] {
    if (this.#begun) return [];
    this.#begun = true;
    return this.#frames([{ type: 'response.in_progress', response: unfinished(response, 'in_progress') }]);
  }

  ending(stored: StoredResponse): GatewayEvent[] {
    const { response } = stored;
    const last = { type: terminalOf(response), response };
    return [...this.beginning(stored), ...this.#frames(this.#unfold(response), last)];
  }

  /** Returns the events of the items. The response is decoded as completed whatever its status is, so that its items are complete events. */
  #unfold(response: JsonObject): JsonObject[] {
    const { output } = response;
    if (!Array.isArray(output) || output.length === 0) return [];
    const completed = { ...response, status: 'completed', error: null, incomplete_details: null };
    const encoder = this.#codec.encodeStream?.(contextOf(response));
    if (encoder === undefined) throw new Error('This format has no streams.');
    const frames = this.#codec.decodeWhole(completed, {}).flatMap((event) => encoder.event(event));
    return [...frames, ...encoder.end()]
      .flatMap((frame) => ('json' in frame ? [frame.json] : []))
      .filter(({ type }) => typeof type === 'string' && !lifecycle.test(type));
  }

  #frames(events: readonly JsonObject[], last?: JsonObject): GatewayEvent[] {
    const wanted = events.flatMap((event) => {
      const number = this.#number++;
      return number > this.#startingAfter ? [write(event, number)] : [];
    });
    if (last !== undefined)
      wanted.push(write(last, Math.max(this.#number, this.#startingAfter + 1)), writeSse({ text: '[DONE]' }));
    if (wanted.length === 0) return [];
    return [{ type: 'frames', format: this.#codec.format, bytes: Buffer.from(wanted.join('')) }];
  }
}

function write(event: JsonObject, number: number): string {
  return writeSse({ event: String(event['type']), json: { ...event, sequence_number: number } });
}

/** Returns the response without its outcome. */
function unfinished(response: JsonObject, status: string): JsonObject {
  const { completed_at: _completed, ...rest } = response;
  return { ...rest, status, error: null, incomplete_details: null, output: [], usage: null };
}

/** Returns the type of the last event. Clients know three of them: a cancelled response ends with `response.incomplete` and its own status. */
function terminalOf({ status }: JsonObject): string {
  return status === 'completed' || status === 'failed' ? `response.${status}` : 'response.incomplete';
}

/** Returns the context for the encoder. The response serves as the body of the request, because it repeats the request's members. */
function contextOf(response: JsonObject): ReplyContext {
  const { id, model, created_at: created } = response;
  return {
    model: typeof model === 'string' ? model : '',
    body: response,
    requestId: String(id).replace(/^resp_/, 'req_'),
    created: typeof created === 'number' ? created : 0,
    inputEstimate: 0,
    drop: () => {},
  };
}
