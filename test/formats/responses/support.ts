import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Codec, EncodeTarget } from '../../../core/sdk/format.ts';
import responses from '../../../core/formats/responses/index.ts';
import type { Block, ChatRequest } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';

function codecOf(operation: 'chat' | 'count-tokens'): Codec<ChatRequest> {
  const codec = responses.codecs[operation];
  if (codec === undefined) throw new Error(`responses have no codec for ${operation}`);
  return codec;
}

export const codec = codecOf('chat');
export const countCodec = codecOf('count-tokens');

/** Returns a target whose encoding collects the losses. */
export function target(
  more: Partial<EncodeTarget> = {},
): EncodeTarget & { readonly losses: readonly string[] } {
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

/** A client's body, decoded. */
export function decode(body: JsonObject): ChatRequest {
  return codec.decodeRequest({ model: 'm', ...body }, {});
}

/** A client's body, decoded and written again for a channel of the same format. */
export function thereAndBack(body: JsonObject, more: Partial<EncodeTarget> = {}): JsonObject {
  return codec.encodeRequest(decode(body), target(more)).body;
}

/** Every block of the history. */
export function blocksOf(request: ChatRequest): readonly Block[] {
  return request.messages.flatMap(({ content }) => content);
}

/** The error that a call throws. */
export function errorOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
