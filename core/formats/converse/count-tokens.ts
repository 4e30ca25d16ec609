import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { optionalObject } from '../_shared/check.ts';
import { countEncoder, decodeCount } from '../_shared/count-tokens.ts';
import type { Codec, RouteParams } from '../../sdk/format.ts';
import { base } from './codec.ts';
import { decodeRequest, modelOf } from './request-in/index.ts';
import { modelPath } from './request-out/index.ts';
import { formatName } from './wire.ts';

/** Name of the field with the token count. */
const countField = 'inputTokens';

/** Returns the conversation that shall be counted. Throws 400 for the body of another API, which is counted where that is spoken. */
function counted(body: JsonObject): JsonObject {
  const input = optionalObject(body.input, 'input');
  const converse = optionalObject(input?.converse, 'input.converse');
  if (converse !== undefined) return converse;
  throw new GatewayError('unsupported_value', 'input must be a conversation: send it as input.converse.', {
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
  decodeWhole: (body) => decodeCount(body, formatName, countField),
  encodeWhole: ({ inputEstimate }) => countEncoder({ [countField]: inputEstimate }, formatName, countField),
  usageTap: () => ({ read: () => undefined }),
};
