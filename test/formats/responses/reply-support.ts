import { ResponsesStreamDecoder } from '../../../core/formats/responses/stream-in/index.ts';
import { ResponsesStreamEncoder } from '../../../core/formats/responses/stream-out/index.ts';
import { responsesCodec } from '../../../core/formats/responses/codec.ts';
import type { Frame, ReplyContext, WireFrame } from '../../../core/sdk/format.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { parseObject } from '../../../core/json/parse.ts';
import { isObject, type JsonObject } from '../../../core/model/json.ts';

/** A request of which nothing but the model is known, unless `body` says more. */
export function context(body: JsonObject = {}, more: Partial<ReplyContext> = {}): ReplyContext {
  return {
    model: 'm',
    body,
    requestId: 'req_01',
    created: 1_760_000_000,
    inputEstimate: 0,
    drop: () => {},
    ...more,
  };
}

/** The frames of a whole stream. */
export function encode(events: readonly GatewayEvent[], asking: ReplyContext = context()): WireFrame[] {
  const encoder = new ResponsesStreamEncoder(asking);
  return [...events.flatMap((event) => [...encoder.event(event)]), ...encoder.end()];
}

/** A whole reply. */
export function whole(events: readonly GatewayEvent[], asking: ReplyContext = context()): JsonObject {
  const encoder = responsesCodec.encodeWhole(asking);
  for (const event of events) encoder.event(event);
  return encoder.end();
}

/** The events of a stream that ended. */
export function decode(frames: readonly (Frame | JsonObject)[]): GatewayEvent[] {
  const decoder = new ResponsesStreamDecoder();
  const events = frames.flatMap((frame) => [
    ...decoder.frame(typeof frame.data === 'string' ? (frame as Frame) : { data: JSON.stringify(frame) }),
  ]);
  return [...events, ...decoder.end()];
}

/** The JSON of frames. */
export function jsonOf(frames: readonly WireFrame[]): JsonObject[] {
  return frames.flatMap((frame) => ('json' in frame ? [frame.json] : []));
}

/** The types of frames, without their common beginning. */
export function typesOf(frames: readonly WireFrame[]): string[] {
  return jsonOf(frames).map(({ type }) => String(type).replace(/^response\./, ''));
}

/** The last response that frames hold. */
export function responseOf(frames: readonly WireFrame[]): JsonObject {
  const responses = jsonOf(frames)
    .map(({ response }) => response)
    .filter(isObject);
  return responses.at(-1) ?? {};
}

/** The items of the last response. */
export function outputOf(frames: readonly WireFrame[]): JsonObject[] {
  const { output } = responseOf(frames);
  return Array.isArray(output) ? (output as JsonObject[]) : [];
}

/** The JSON of server-sent events. */
export function framesOf(sse: string): JsonObject[] {
  return sse
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => parseObject(line.slice(6)) ?? {});
}

/** A short answer: a head, the given events, an end and its usage. */
export function reply(
  events: readonly GatewayEvent[],
  finish: Partial<Extract<GatewayEvent, { type: 'finish' }>> = {},
): GatewayEvent[] {
  return [
    { type: 'head', id: 'chatcmpl-1', model: 'up', created: 1_760_000_001 },
    ...events,
    { type: 'finish', choice: 0, reason: 'stop', ...finish },
    {
      type: 'usage',
      usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 10, reasoning: 20 },
    },
  ];
}

/** The events of one text. */
export function text(words: string, block = 0): GatewayEvent[] {
  return [
    { type: 'text-start', block, choice: 0 },
    { type: 'text-delta', block, choice: 0, text: words },
    { type: 'text-end', block, choice: 0 },
  ];
}
