import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type {
  Codec,
  EncodedRequest,
  EncodeTarget,
  ReplyContext,
  StreamEncoder,
  WireFrame,
} from '../../../core/sdk/format.ts';
import messages from '../../../core/formats/messages/index.ts';
import { MessagesFold } from '../../../core/formats/messages/whole.ts';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import type { ChatRequest } from '../../../core/model/chat.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';

export const chat = messages.codecs.chat as Codec<ChatRequest>;
export const count = messages.codecs['count-tokens'] as Codec<ChatRequest>;

const folder = fileURLToPath(new URL('../../fixtures/messages/', import.meta.url));

/** Names of the fixtures of a kind that have this ending. */
export function fixtures(kind: string, ending: string): string[] {
  return readdirSync(`${folder}${kind}`)
    .filter((file) => file.endsWith(ending))
    .map((file) => file.slice(0, -ending.length))
    .toSorted();
}

export function fixture(kind: string, file: string): string {
  return readFileSync(`${folder}${kind}/${file}`, 'utf8');
}

export function hasFixture(kind: string, file: string): boolean {
  return existsSync(`${folder}${kind}/${file}`);
}

export function bodyOf(name: string, kind = 'requests'): JsonObject {
  return (JSON.parse(fixture(kind, `${name}.json`)) as { body: JsonObject }).body;
}

/** Encodes with losses gathered; the request's own model and stream flag unless told otherwise. */
export function encode(
  request: ChatRequest,
  changes: Partial<EncodeTarget> = {},
): EncodedRequest & { readonly losses: string[] } {
  const losses: string[] = [];
  const codec = request.operation === 'chat' ? chat : count;
  const encoded = codec.encodeRequest(request, {
    model: request.model,
    stream: request.stream,
    traits: {},
    headers: {},
    unsupported: 'refuse',
    drop: (path) => losses.push(path),
    ...changes,
  });
  return { ...encoded, losses };
}

/** A request that another format's client made. */
export function foreign(changes: Partial<ChatRequest> = {}): ChatRequest {
  return {
    operation: 'chat',
    format: 'chat-completions',
    model: 'm',
    stream: false,
    system: [],
    messages: [
      {
        role: 'user',
        content: [{ type: 'text', text: 'Hi', at: 'messages[0].content' }],
        plain: true,
        at: 'messages[0]',
      },
    ],
    tools: [],
    settings: {},
    ...changes,
  };
}

export function context(changes: Partial<ReplyContext> = {}): ReplyContext {
  return {
    model: 'm',
    body: {},
    requestId: 'req_1',
    created: 1_760_000_000,
    inputEstimate: 7,
    drop: () => {},
    ...changes,
  };
}

export function decode(text: string): GatewayEvent[] {
  const decoder = chat.decodeStream?.({});
  if (decoder === undefined) throw new Error('no stream');
  return [...parseSse(text).flatMap((frame) => decoder.frame(frame)), ...decoder.end()];
}

export function encoder(changes: Partial<ReplyContext> = {}): StreamEncoder {
  const made = chat.encodeStream?.(context(changes));
  if (made === undefined) throw new Error('no stream');
  return made;
}

export function framesOf(events: readonly GatewayEvent[], changes: Partial<ReplyContext> = {}): WireFrame[] {
  const made = encoder(changes);
  return [...events.flatMap((event) => made.event(event)), ...made.end()];
}

export function fold(frames: readonly WireFrame[]): JsonObject {
  const folded = new MessagesFold();
  for (const frame of frames) folded.frame(frame);
  return folded.end();
}

/** Frames as a provider sent them. */
export function wireOf(text: string): WireFrame[] {
  return parseSse(text).map(({ event = '', data }) => ({ event, json: JSON.parse(data) as JsonObject }));
}

export function sse(...frames: readonly (JsonObject & { readonly type: string })[]): string {
  return frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join('');
}

/** The GatewayError that this throws; fails for anything else. */
export function refusal(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
