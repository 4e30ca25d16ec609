import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { optionalObject } from '../_shared/check.ts';
import { throwIfError } from '../_shared/one-shot.ts';
import type { Codec, ReplyContext, RouteParams, WholeEncoder } from '../../sdk/format.ts';
import { base } from './codec.ts';
import { decodeRequest, modelOf } from './request-in/index.ts';
import { modelPath } from './request-out/index.ts';

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
