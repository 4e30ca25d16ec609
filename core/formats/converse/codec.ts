import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest, MediaBlock } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { given, optionalObject } from '../_shared/check.ts';
import { throwIfError } from '../_shared/one-shot.ts';
import type { Codec, ReplyContext, RouteParams, WholeEncoder } from '../format.ts';
import { patch } from './patch.ts';
import { decodeRequest, modelOf } from './request-in/index.ts';
import { encodeRequest, modelPath } from './request-out/index.ts';
import { settingPath } from './settings.ts';
import { ConverseStreamDecoder } from './stream-in/index.ts';
import { ConverseStreamEncoder } from './stream-out/index.ts';
import { usageTap } from './usage.ts';
import { ConverseWholeEncoder, decodeWhole } from './whole/index.ts';
import { name } from './wire.ts';
import { words } from './words.ts';

/** What the codecs of both operations share. */
const base = {
  format: name,
  marks: { usage: ['"usage"'], terminal: ['messageStop'] },
  // The binary framing knows no comments; they would only mean something inside the gateway.
  toleratesComments: false,
  wantsBytes: ({ source }: MediaBlock) => source.kind === 'url',
  settingPath,
  words,
  encodeRequest,
} as const;

/** Converse and ConverseStream. */
export const chat: Codec<ChatRequest> = {
  ...base,
  operation: 'chat',
  upstreamFraming: 'sse',
  endsStream: ({ event }) => event === 'messageStop',
  peek: (_body, params) => ({ model: modelOf(params), stream: params.stream === true }),
  validate: (body, params) => decodeRequest(body, params),
  clientFraming: () => 'event-stream',
  patch,
  passThrough: (model, stream) => ({ path: modelPath(model, stream ? 'converse-stream' : 'converse') }),
  onlyNative,
  decodeRequest: (body, params) => decodeRequest(body, params),
  decodeStream: () => new ConverseStreamDecoder(),
  encodeStream: (context) => new ConverseStreamEncoder(context),
  decodeWhole,
  encodeWhole: (context) => new ConverseWholeEncoder(context),
  usageTap,
};

/** What would be another answer without the provider: a guardrail that does not guard, a prompt that is not there. */
function onlyNative(body: JsonObject): GatewayError | undefined {
  const param = ['guardrailConfig', 'promptVariables'].find((field) => given(body[field]));
  if (param === undefined) return undefined;
  return new GatewayError('unsupported_parameter', `${param} needs a channel of the ${name} format.`, {
    param,
  });
}

/** The conversation that shall be counted. Throws 400 for the body of another API, which is counted where that is spoken. */
function counted(body: JsonObject): JsonObject {
  const input = optionalObject(body.input, 'input');
  const converse = optionalObject(input?.converse, 'input.converse');
  if (converse !== undefined) return converse;
  throw new GatewayError('unsupported_value', 'input must be a conversation: give it as input.converse.', {
    param: 'input',
  });
}

function decodeCountRequest(body: JsonObject, params: RouteParams): ChatRequest {
  return decodeRequest(counted(body), params, 'count-tokens');
}

/** Counts the tokens of a conversation. Counts are never billed, so that no usage is read from them. */
export const countTokens: Codec<ChatRequest> = {
  ...base,
  operation: 'count-tokens',
  upstreamFraming: 'none',
  peek: (_body, params) => ({ model: modelOf(params), stream: false }),
  validate: decodeCountRequest,
  clientFraming: () => 'none',
  patch: (body) => body,
  passThrough: (model) => ({ path: modelPath(model, 'count-tokens') }),
  decodeRequest: decodeCountRequest,
  decodeWhole: decodeCount,
  encodeWhole: encodeCount,
  usageTap: () => ({ read: () => undefined }),
};

function decodeCount(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { inputTokens: tokens } = body;
  if (typeof tokens !== 'number') {
    throw new GatewayError('upstream_error', 'The upstream sent JSON that is no count.', {
      origin: 'upstream',
    });
  }
  return [{ type: 'result', value: { tokens } }];
}

function encodeCount({ inputEstimate }: ReplyContext): WholeEncoder {
  let inputTokens = inputEstimate;
  return {
    event(event) {
      if (event.type === 'result' && isObject(event.value) && typeof event.value.tokens === 'number')
        inputTokens = event.value.tokens;
    },
    end: () => ({ inputTokens }),
  };
}
