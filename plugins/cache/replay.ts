import { concatMap, map, of, timer, type Observable } from 'rxjs';
import type { Call, GatewayEvent } from 'sluice';
import { isOfOneCall, type Entry } from './entry.ts';
import { LogReader, type Shown } from './log-reader.ts';

/** Characters of a piece in which a text is streamed again, at a set pace: about a token. */
const pieceLength = 4;

/** Shows a call the events of another call's response: with an id and a time of its own, and without what is about the other call alone. */
export function shownTo(call: Call, format: string): Shown {
  const isSameFormat = call.format.name === format;
  return (event) => {
    if (isOfOneCall(event)) return undefined;
    // Losses are told in the words of the format in which the request was written.
    if (event.type === 'loss') return isSameFormat ? event : undefined;
    if (event.type === 'head') return { ...event, id: call.id, created: call.created };
    return event.type === 'result' ? { ...event, value: withOwnId(event.value, call.id) } : event;
  };
}

type Result = Extract<GatewayEvent, { type: 'result' }>['value'];

/** The result of an operation with the id of this call, where it has one. */
function withOwnId(value: Result, id: string): Result {
  const has = typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string';
  return has ? ({ ...value, id } as Result) : value;
}

/** Returns a kept response as one of this call. `pace`: events a second of a stream. */
export function replayed(entry: Entry, call: Call, pace: number | 'at once'): Observable<GatewayEvent> {
  const isPaced = pace !== 'at once' && call.stream;
  const events = isPaced ? entry.events.flatMap(inPieces) : entry.events;
  const log = { eventAt: (place: number) => events[place], end: {} };
  const { stream } = new LogReader(log, call.gate, { shown: shownTo(call, entry.format) });
  if (!isPaced) return stream;
  return stream.pipe(
    concatMap((event) => (isDelta(event) ? timer(1_000 / pace).pipe(map(() => event)) : of(event))),
  );
}

function isDelta({ type }: GatewayEvent): boolean {
  return type.endsWith('-delta');
}

/** A delta with a text as several deltas, each of about a token. */
function inPieces(event: GatewayEvent): readonly GatewayEvent[] {
  switch (event.type) {
    case 'text-delta':
    case 'reasoning-delta':
    case 'refusal-delta':
      if ('logprobs' in event || event.extra !== undefined) return [event];
      return pieces(event.text).map((text) => ({ ...event, text }));
    case 'tool-delta':
      return pieces(event.input).map((input) => ({ ...event, input }));
    default:
      return [event];
  }
}

/** Cuts a text where no character is cut. */
function pieces(text: string): readonly string[] {
  if (text.length <= pieceLength) return [text];
  const out: string[] = [];
  for (let start = 0; start < text.length;) {
    let end = start + pieceLength;
    // The second half of a pair stays with its first.
    const next = text.charCodeAt(end);
    if (next >= 0xdc00 && next <= 0xdfff) end += 1;
    out.push(text.slice(start, end));
    start = end;
  }
  return out;
}
