import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { GatewayError } from '../../../core/sdk/errors.ts';
import chatCompletions from '../../../core/formats/chat-completions/index.ts';
import type {
  Codec,
  EncodeTarget,
  Frame,
  ReplyContext,
  StreamDecoder,
  StreamEncoder,
  WireFrame,
} from '../../../core/sdk/format.ts';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import type { ChatRequest } from '../../../core/model/chat.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';

function chatCodec(): Codec<ChatRequest> {
  const codec = chatCompletions.codecs.chat;
  if (codec === undefined) throw new Error('chat completions have no chat codec');
  return codec;
}

export const codec = chatCodec();

/** Returns a target whose encoding collects the losses. */
export function target(more: Partial<EncodeTarget> & { readonly traits?: ModelTraits } = {}): EncodeTarget & {
  readonly losses: string[];
} {
  const losses: string[] = [];
  return {
    model: 'm',
    stream: false,
    traits: {},
    headers: {},
    unsupported: 'refuse',
    ...more,
    drop: (path) => losses.push(path),
    losses,
  };
}

/** A request as another format's decoder would give it. */
export function foreign(more: Partial<ChatRequest>): ChatRequest {
  return {
    operation: 'chat',
    format: 'messages',
    model: 'm',
    stream: false,
    system: [],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }], plain: true }],
    tools: [],
    settings: {},
    ...more,
  };
}

export function context(more: Partial<ReplyContext> = {}): ReplyContext & { readonly losses: string[] } {
  const losses: string[] = [];
  return {
    model: 'm',
    body: { stream_options: { include_usage: true } },
    requestId: 'req_1',
    created: 1_760_000_001,
    inputEstimate: 0,
    ...more,
    drop: (path) => losses.push(path),
    losses,
  };
}

export function decoder(traits: ModelTraits = {}): StreamDecoder {
  const made = codec.decodeStream?.(traits);
  if (made === undefined) throw new Error('no stream decoder');
  return made;
}

export function encoder(of: ReplyContext = context()): StreamEncoder {
  const made = codec.encodeStream?.(of);
  if (made === undefined) throw new Error('no stream encoder');
  return made;
}

export function decodeFrames(frames: readonly Frame[], traits: ModelTraits = {}): GatewayEvent[] {
  const stream = decoder(traits);
  return [...frames.flatMap((frame) => [...stream.frame(frame)]), ...stream.end()];
}

export function decodeSse(text: string, traits: ModelTraits = {}): GatewayEvent[] {
  return decodeFrames(parseSse(text), traits);
}

export function encodeEvents(events: readonly GatewayEvent[], of: ReplyContext = context()): WireFrame[] {
  const stream = encoder(of);
  return [...events.flatMap((event) => [...stream.event(event)]), ...stream.end()];
}

export function encodeWhole(events: readonly GatewayEvent[], of: ReplyContext = context()): JsonObject {
  const made = codec.encodeWhole(of);
  for (const event of events) made.event(event);
  return made.end();
}

/** A stream's frames as they stood on the wire. */
export function wireFrames(text: string): WireFrame[] {
  return parseSse(text).map(({ data }) =>
    data === '[DONE]' ? { text: data } : { json: JSON.parse(data) as JsonObject },
  );
}

function chunkOf(delta: JsonObject, finish: string | null): Frame {
  return {
    data: JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1_760_000_000,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason: finish }],
    }),
  };
}

/** A stream of these deltas, with its beginning and its end. */
export function deltas(list: readonly JsonObject[], finish = 'stop'): Frame[] {
  return [
    chunkOf({ role: 'assistant', content: '', refusal: null }, null),
    ...list.map((delta) => chunkOf(delta, null)),
    chunkOf({}, finish),
    { data: '[DONE]' },
  ];
}

/** The GatewayError that this throws; anything else fails the test. */
export function failureOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('did not fail');
}

/** The events with the text of every delta of this type replaced. */
export function censored(
  events: readonly GatewayEvent[],
  type: 'text-delta' | 'reasoning-delta',
): GatewayEvent[] {
  const edited: GatewayEvent[] = [];
  for (const event of events) edited.push(event.type === type ? { ...event, text: '***' } : event);
  return edited;
}

export function fixture(path: string): string {
  return readFileSync(
    fileURLToPath(new URL(`../../fixtures/chat-completions/${path}`, import.meta.url)),
    'utf8',
  );
}

/** The chunks of a stream, without its terminator. */
export function chunks(frames: readonly WireFrame[]): JsonObject[] {
  return frames.flatMap((frame) => ('json' in frame ? [frame.json] : []));
}

/** Returns the deltas of the first choice. */
export function deltasOf(frames: readonly WireFrame[]): unknown[] {
  return chunks(frames).flatMap((chunk) => {
    const choices = chunk.choices as readonly { readonly delta: unknown }[];
    return choices.map((choice) => choice.delta);
  });
}

export type { GatewayEvent, JsonObject, WireFrame };
