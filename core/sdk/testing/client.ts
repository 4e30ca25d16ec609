/** Encodes the events of a response as the client of a test would receive them. */
import type { Exchange } from '../../call/exchange.ts';
import { replyContext } from '../../call/view.ts';
import { writeNdjson } from '../../formats/_shared/json-frames.ts';
import { writeSse } from '../../formats/_shared/sse.ts';
import type { GatewayEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import { toGatewayError } from '../errors.ts';
import type { WireFrame } from '../format.ts';

/** Response in the client's format. */
export interface Received {
  /** 200, or that of the error that came before the reply. */
  readonly status: number;
  /** The reply's body, or the error's; undefined for a stream. */
  readonly body: JsonObject | undefined;
  /** The bytes of a stream, or of the body. */
  readonly wire: string;
}

/** Encodes events and the error that ended them, if any, in the client's format. */
export function received(exchange: Exchange, events: readonly GatewayEvent[], failure: unknown): Received {
  const reported = events.filter(({ type }) => type !== 'request' && type !== 'attempt' && type !== 'loss');
  if (failure !== undefined && (reported.length === 0 || !exchange.stream)) return refused(exchange, failure);
  const { name } = exchange.format;
  const context = replyContext(exchange, (path) =>
    exchange.reportLoss({ path, kind: 'response', from: '', to: name }),
  );
  const frames = reported.filter((event) => event.type === 'frames' || event.type === 'bytes');
  if (frames.length > 0) {
    const wire = Buffer.concat(frames.map(({ bytes }) => bytes)).toString();
    return { status: 200, body: exchange.stream ? undefined : (JSON.parse(wire) as JsonObject), wire };
  }
  try {
    if (exchange.stream) {
      const encoder = exchange.codec.encodeStream?.(context);
      if (encoder === undefined) throw new Error(`${exchange.format.name} has no stream.`);
      const all: WireFrame[] = [
        ...reported.flatMap((event) => encoder.event(event)),
        ...(failure === undefined ? encoder.end() : encoder.error(toGatewayError(failure))),
      ];
      const write = exchange.framing === 'sse' ? writeSse : writeNdjson;
      return { status: 200, body: undefined, wire: all.map((frame) => write(frame)).join('') };
    }
    const encoder = exchange.codec.encodeWhole(context);
    for (const event of reported) encoder.event(event);
    const body = encoder.end();
    return { status: 200, body, wire: JSON.stringify(body) };
  } catch (error) {
    return refused(exchange, error);
  }
}

function refused(exchange: Exchange, failure: unknown): Received {
  const { status, body } = exchange.format.errorReply(toGatewayError(failure), exchange.id);
  return { status, body, wire: JSON.stringify(body) };
}

/** Returns the text of the first choice. */
export function textOf(events: readonly GatewayEvent[]): string {
  return events
    .map((event) => (event.type === 'text-delta' && event.choice === 0 ? event.text : ''))
    .join('');
}
