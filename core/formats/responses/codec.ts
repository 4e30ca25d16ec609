/** Codecs of Responses: chat and token counting. */
import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { given, peek } from '../_shared/check.ts';
import { frameType } from '../_shared/stream-frames.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeRequest } from './request-in/index.ts';
import { ResponsesStreamDecoder } from './stream-in/index.ts';
import { wantsBytes } from './request-out/parts.ts';
import { encodeRequest, passThrough } from './request-out/index.ts';
import { ResponsesStreamEncoder } from './stream-out/index.ts';
import { official, patch } from './patch.ts';
import { places, settingPath } from './settings.ts';
import { usageTap } from './usage.ts';
import { validate } from './validate.ts';
import { decodeWhole, ResponsesFold } from './whole.ts';
import { formatName } from './wire.ts';
import { words } from './words.ts';
import { folded } from '../_shared/folded.ts';
import { countEncoder, decodeCount } from '../_shared/count-tokens.ts';

/** Member that holds a token count. */
const countField = 'input_tokens';

/** The last frames of a stream. */
const lastFrames: readonly string[] = ['response.completed', 'response.incomplete', 'response.failed'];

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
    marks: {
      number: '"sequence_number"',
      // Snapshots before the last one carry `"usage":null`, which is no usage.
      usage: ['"usage":{', '"usage": {', '"usage" : {'],
      terminal: lastFrames,
    },
    endsStream: (frame) => lastFrames.includes(frameType(frame) ?? ''),
    peek: (body) => (counting ? { ...peek(body), stream: false } : peek(body)),
    validate: (body) => validate(body, operation),
    outlines: true,
    writesMarks: true,
    clientFraming: () => (counting ? 'none' : 'sse'),
    patch: (body, edits, traits, drop) => patch(body, edits, traits, counting, drop),
    official,
    passThrough: (_model, _stream, headers) => passThrough(operation, headers),
    onlyNative,
    wantsBytes,
    decodeRequest: (body) => decodeRequest(body, operation),
    encodeRequest,
    singleChoice: true,
    settingPath,
    places,
    words,
  };
}

/** Returns an error for requests that continue turns which only a provider of this format keeps. */
function onlyNative(body: JsonObject): GatewayError | undefined {
  const param = ['previous_response_id', 'conversation'].find((field) => given(body[field]));
  if (param === undefined) return undefined;
  return new GatewayError(
    'unsupported_parameter',
    `${param}: the channel for this model does not store earlier turns. Send the whole input without it.`,
    { param },
  );
}

/**
 * Codec of chats in the Responses API. A channel spreads it into a codec of its own, as `chatCodec`.
 *
 * @example
 * const codec: Codec<ChatRequest> = { ...responsesCodec, decodeWhole: (body, traits) => responsesCodec.decodeWhole(withoutSearches(body), traits) };
 */
export const responsesCodec: Codec<ChatRequest> & Required<Pick<Codec, 'decodeStream'>> = {
  ...base('chat'),
  decodeStream: () => new ResponsesStreamDecoder(),
  encodeStream: (context) => new ResponsesStreamEncoder(context),
  decodeWhole,
  encodeWhole: (context) => folded(new ResponsesStreamEncoder(context), new ResponsesFold()),
  usageTap,
};

/** Codec of token counts. Counts are never billed, so that no usage is read from them. */
export const countTokensCodec: Codec<ChatRequest> = {
  ...base('count-tokens'),
  decodeWhole: (body) => decodeCount(body, formatName, countField),
  encodeWhole: ({ inputEstimate }) =>
    countEncoder({ object: 'response.input_tokens', [countField]: inputEstimate }, formatName, countField),
  usageTap: () => ({ read: () => undefined }),
};
