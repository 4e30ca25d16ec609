import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { given, optionalBoolean, requiredModel } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { typeOf } from '../_shared/stream-frames.ts';
import { upstreamError } from '../_shared/upstream-error.ts';
import type { Codec, ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { decodeRequest } from './request-in/index.ts';
import { MessagesStreamDecoder } from './stream-in/index.ts';
import { encodeRequest } from './request-out/index.ts';
import { wantsBytes } from './request-out/media.ts';
import { MessagesStreamEncoder } from './stream-out/index.ts';
import { travelling } from './headers.ts';
import { patch, withBudget } from './patch.ts';
import { settingPath } from './settings.ts';
import { MessagesWholeEncoder, unfold } from './whole.ts';
import { MessagesUsageTap } from './usage.ts';
import { name } from './wire.ts';
import { words } from './words.ts';

/** What the codecs of both operations share. */
function base(
  operation: ChatRequest['operation'],
): Omit<Codec<ChatRequest>, 'decodeWhole' | 'encodeWhole' | 'usageTap'> {
  const counting = operation === 'count-tokens';
  return {
    format: name,
    operation,
    upstreamFraming: counting ? 'none' : 'sse',
    toleratesComments: true,
    // Quotes and line ends keep an answer that talks about these words from being taken for them.
    marks: {
      usage: ['"usage"'],
      terminal: ['message_stop'],
    },
    endsStream: (frame) => typeOf(frame) === 'message_stop',
    peek: (body) => ({
      model: requiredModel(body.model),
      stream: !counting && optionalBoolean(body.stream, 'stream') === true,
    }),
    validate: (body) => decodeRequest(body, operation),
    outlines: true,
    clientFraming: () => 'sse',
    patch: (body, edits, traits, lose) => patch(body, edits, traits, counting, lose),
    official: withBudget,
    passThrough: (_model, _stream, headers) => ({
      path: counting ? '/messages/count_tokens' : '/messages',
      headers: travelling(headers),
    }),
    onlyNative: (body) => onlyNative(body, operation),
    wantsBytes,
    decodeRequest: (body) => decodeRequest(body, operation),
    encodeRequest,
    settingPath,
    words,
  };
}

/** What only channels of this format have. The SDK resends without a thread when it reads that code. */
function onlyNative(body: JsonObject, operation: ChatRequest['operation']): GatewayError | undefined {
  if (operation === 'chat' && body.max_tokens === 0) {
    return new GatewayError(
      'invalid_value',
      'max_tokens must be at least 1: the channel for this model has no prompt cache that could be written without an answer.',
      { param: 'max_tokens' },
    );
  }
  if (!given(body.thread)) return undefined;
  return new GatewayError(
    'thread_unsupported_request',
    'The channel for this model keeps no message threads: send the whole history without `thread`.',
    { param: 'thread', details: { error_code: 'thread_unsupported_request' } },
  );
}

function throwIfError(body: JsonObject): void {
  if (body.type === 'error' || isObject(body.error)) throw upstreamError(200, JSON.stringify(body));
}

function notAnAnswer(): GatewayError {
  return new GatewayError('upstream_error', 'The upstream sent JSON that is no answer.', {
    origin: 'upstream',
  });
}

/** Messages in, messages out. */
export const chatCodec: Codec<ChatRequest> = {
  ...base('chat'),
  decodeStream: () => new MessagesStreamDecoder(),
  encodeStream: (context) => new MessagesStreamEncoder(context),
  decodeWhole(body) {
    throwIfError(body);
    if (!Array.isArray(body.content)) throw notAnAnswer();
    const decoder = new MessagesStreamDecoder();
    return [...unfold(body).flatMap((frame) => decoder.json(frame)), ...decoder.end()];
  },
  encodeWhole: (context) => new MessagesWholeEncoder(context),
  usageTap: () => new MessagesUsageTap(),
};

/** Counts the tokens of a request. Counts are never billed, so that no usage is read from them. */
export const countCodec: Codec<ChatRequest> = {
  ...base('count-tokens'),
  decodeWhole: decodeCount,
  encodeWhole: encodeCount,
  usageTap: () => ({ read: () => undefined }),
};

function decodeCount(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { input_tokens: tokens, ...rest } = body;
  if (typeof tokens !== 'number') throw notAnAnswer();
  const extra = Object.keys(rest).length === 0 ? {} : { extra: { [name]: rest } };
  return [{ type: 'result', value: { tokens, ...extra } }];
}

function encodeCount(context: ReplyContext): WholeEncoder {
  const reply: MutableObject = { input_tokens: context.inputEstimate };
  return {
    event(event) {
      if (event.type !== 'result' || !isObject(event.value)) return;
      const { tokens, extra } = event.value;
      if (typeof tokens === 'number') reply.input_tokens = tokens;
      const fields = isObject(extra) && isObject(extra[name]) ? extra[name] : {};
      Object.assign(reply, fields);
    },
    end: () => reply,
  };
}
