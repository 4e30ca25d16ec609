/** Codecs of Messages: chat and token counting. */
import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { given, optionalBoolean, requiredModel } from '../_shared/check.ts';
import { frameType } from '../_shared/stream-frames.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeRequest } from './request-in/index.ts';
import { MessagesStreamDecoder } from './stream-in/index.ts';
import { encodeRequest } from './request-out/index.ts';
import { wantsBytes } from './request-out/media.ts';
import { MessagesStreamEncoder } from './stream-out.ts';
import { travelling } from './headers.ts';
import { patch, withBudget, withPlainTools } from './patch.ts';
import { places, settingPath } from './settings.ts';
import { MessagesFold, unfold } from './whole.ts';
import { usageTap } from './usage.ts';
import { formatName } from './wire.ts';
import { words } from './words.ts';
import { countEncoder, decodeCount } from '../_shared/count-tokens.ts';
import { folded } from '../_shared/folded.ts';
import { unusableResponse, throwIfError } from '../_shared/upstream-error/index.ts';

/** Member that holds a token count. */
const countField = 'input_tokens';

/** Returns the members that the codecs of both operations share. */
function base(
  operation: ChatRequest['operation'],
): Omit<Codec<ChatRequest>, 'decodeWhole' | 'encodeWhole' | 'usageTap'> {
  const counting = operation === 'count-tokens';
  return {
    format: formatName,
    operation,
    upstreamFraming: counting ? 'none' : 'sse',
    toleratesComments: true,
    // The text of an answer cannot contain `"usage"`, because its quotes are escaped. It can contain `message_stop`: `endsStream` decides.
    marks: {
      usage: ['"usage"'],
      terminal: ['message_stop'],
    },
    endsStream: (frame) => frameType(frame) === 'message_stop',
    peek: (body) => ({
      model: requiredModel(body.model),
      stream: !counting && optionalBoolean(body.stream, 'stream') === true,
    }),
    validate: (body) => decodeRequest(body, operation),
    outlines: true,
    writesMarks: true,
    clientFraming: () => 'sse',
    patch: (body, edits, traits, drop) => patch(body, edits, traits, counting, drop),
    official: (body, traits, drop) => withPlainTools(withBudget(body, traits, drop), traits),
    passThrough: (_model, _stream, headers) => ({
      path: counting ? '/messages/count_tokens' : '/messages',
      headers: travelling(headers),
    }),
    onlyNative: (body) => onlyNative(body, operation),
    wantsBytes,
    decodeRequest: (body) => decodeRequest(body, operation),
    encodeRequest,
    singleChoice: true,
    settingPath,
    places,
    // https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking: "auto" and "none" alone are compatible with thinking.
    forcedTools: 'without-thinking',
    words,
  };
}

/** Returns an error for requests that only channels of this format can answer. The SDK resends without a thread when it reads that code. */
function onlyNative(body: JsonObject, operation: ChatRequest['operation']): GatewayError | undefined {
  if (operation === 'chat' && body.max_tokens === 0) {
    return new GatewayError(
      'invalid_value',
      'max_tokens must be at least 1: the channel for this model has no prompt cache that could be written without a response.',
      { param: 'max_tokens' },
    );
  }
  if (!given(body.thread)) return undefined;
  return new GatewayError(
    'thread_unsupported_request',
    'The channel for this model does not store message threads. Send the whole history without `thread`.',
    { param: 'thread', details: { error_code: 'thread_unsupported_request' } },
  );
}

/** Codec of chats. */
export const chatCodec: Codec<ChatRequest> = {
  ...base('chat'),
  decodeStream: () => new MessagesStreamDecoder(),
  encodeStream: (context) => new MessagesStreamEncoder(context),
  decodeWhole(body) {
    throwIfError(body);
    if (!Array.isArray(body.content)) throw unusableResponse('sent JSON that is not a response');
    const decoder = new MessagesStreamDecoder();
    return [...unfold(body).flatMap((frame) => decoder.json(frame)), ...decoder.end()];
  },
  encodeWhole: (context) => folded(new MessagesStreamEncoder(context), new MessagesFold()),
  usageTap,
};

/** Counts the tokens of a request. Counts are never billed, so that no usage is read from them. */
export const countCodec: Codec<ChatRequest> = {
  ...base('count-tokens'),
  decodeWhole: (body) => decodeCount(body, formatName, countField),
  encodeWhole: ({ inputEstimate }) => countEncoder({ [countField]: inputEstimate }, formatName, countField),
  usageTap: () => ({ read: () => undefined }),
};
