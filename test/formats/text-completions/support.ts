import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Codec, EncodeTarget, Frame, ReplyContext, WireFrame } from '../../../core/sdk/format.ts';
import textCompletions from '../../../core/formats/text-completions/index.ts';
import type { ChatRequest } from '../../../core/model/chat.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';

function chatCodec(): Codec<ChatRequest> {
  const codec = textCompletions.codecs.chat;
  if (codec === undefined) throw new Error('text completions have no chat codec');
  return codec;
}

export const codec = chatCodec();

/** Returns a target whose encoding collects the losses. */
export function target(
  more: Partial<EncodeTarget> = {},
): EncodeTarget & { readonly losses: [string, string][] } {
  const losses: [string, string][] = [];
  return {
    model: 'm',
    stream: false,
    traits: {},
    headers: {},
    unsupported: 'refuse',
    ...more,
    drop: (path, kind = 'setting') => losses.push([path, kind]),
    losses,
  };
}

/** A request as another format's decoder would give it. */
export function foreign(more: Partial<ChatRequest> = {}): ChatRequest {
  return {
    operation: 'chat',
    format: 'messages',
    model: 'm',
    stream: false,
    system: [],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }], plain: true, at: 'messages[0]' }],
    tools: [],
    settings: {},
    ...more,
  };
}

export function context(body: JsonObject = {}): ReplyContext & { readonly losses: string[] } {
  const losses: string[] = [];
  return {
    model: 'm',
    body,
    requestId: 'req_1',
    created: 1_760_000_001,
    inputEstimate: 0,
    drop: (path) => losses.push(path),
    losses,
  };
}

export function decodeFrames(frames: readonly Frame[]): GatewayEvent[] {
  const stream = codec.decodeStream?.({});
  if (stream === undefined) throw new Error('no stream decoder');
  return [...frames.flatMap((frame) => [...stream.frame(frame)]), ...stream.end()];
}

export function encodeEvents(events: readonly GatewayEvent[], of: ReplyContext = context()): WireFrame[] {
  const stream = codec.encodeStream?.(of);
  if (stream === undefined) throw new Error('no stream encoder');
  return [...events.flatMap((event) => [...stream.event(event)]), ...stream.end()];
}

export function encodeWhole(events: readonly GatewayEvent[], of: ReplyContext = context()): JsonObject {
  const made = codec.encodeWhole(of);
  for (const event of events) made.event(event);
  return made.end();
}

/** An answer of a chat model. */
export function answer(text: readonly string[], choice = 0, block = choice): GatewayEvent[] {
  const position = { block, choice };
  return [
    { type: 'text-start', ...position },
    ...text.map((piece): GatewayEvent => ({ type: 'text-delta', ...position, text: piece })),
    { type: 'text-end', ...position },
    { type: 'finish', choice, reason: 'stop' },
  ];
}

export const head: GatewayEvent = { type: 'head', id: 'msg_abc', model: 'provider-model' };

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
