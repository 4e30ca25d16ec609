import type { Call, GatewayEvent } from 'sluice';
import { isOfOneCall } from './entry.ts';
import type { Shown } from './log-reader.ts';

/**
 * Shows a call the events of another call's response: with an id and a time of its own, and without what is about the other call alone.
 * `source.format`: the format of that other call, read at each dropped field.
 */
export function shownTo(call: Call, source: { readonly format: string }): Shown {
  return (event) => {
    if (isOfOneCall(event)) return undefined;
    // Dropped fields are named in the format in which the request was written.
    if (event.type === 'loss') return source.format === call.format.name ? event : undefined;
    if (event.type === 'head') return { ...event, id: call.id, created: call.created };
    return event.type === 'result' ? { ...event, value: withOwnId(event.value, call.id) } : event;
  };
}

type Result = Extract<GatewayEvent, { type: 'result' }>['value'];

/** Returns the result of an operation with the id of this call, where it has one. */
function withOwnId(value: Result, id: string): Result {
  const has = typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string';
  return has ? ({ ...value, id } as Result) : value;
}
