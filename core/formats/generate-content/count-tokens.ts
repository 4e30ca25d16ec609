import { countEncoder, decodeCount as decodeCounted } from '../_shared/count-tokens.ts';
import { GatewayError, wrongValue } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { given, optionalObject } from '../_shared/check.ts';
import type { Codec, Edits, EncodedRequest, EncodeTarget, RouteParams } from '../../sdk/format.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { defined } from '../_shared/fields.ts';
import { chat } from './codec.ts';
import { decodeChat } from './request-in/index.ts';
import { encodeBody, methodPath } from './request-out/index.ts';
import { startWriting } from './request-out/scope.ts';
import { wantsBytes } from './parts.ts';
import { patch, renamed } from './patch.ts';
import { formatName, official, leftovers, own } from './wire.ts';
import { words } from './words.ts';

/** Name of the field with the token count. */
const countField = 'totalTokens';

/** countTokens: the contents alone, or a whole request inside `generateContentRequest`. */
export const countTokens: Codec<ChatRequest> = {
  format: formatName,
  operation: 'count-tokens',
  upstreamFraming: 'none',
  marks: { usage: [], terminal: [] },
  toleratesComments: false,
  peek: (body, params) => ({ ...chat.peek(body, params), stream: false }),
  validate: (body, params) => decodeCount(body, params),
  clientFraming: () => 'none',
  patch: patchCount,
  passThrough: (model) => methodPath(model, 'countTokens'),
  wantsBytes,
  decodeRequest: decodeCount,
  encodeRequest: encodeCount,
  decodeWhole: (body) => decodeCounted(body, formatName, countField),
  encodeWhole: () => countEncoder({ [countField]: 0 }, formatName, countField),
  usageTap: () => ({ read: () => undefined }),
  settingPath: chat.settingPath,
  words,
};

function decodeCount(wire: JsonObject, params: RouteParams): ChatRequest {
  const body = official(wire, 'countRequest');
  const inner = optionalObject(body.generateContentRequest, 'generateContentRequest');
  const extras = leftovers();
  if (inner === undefined) return { ...decodeChat(body, params, extras), operation: 'count-tokens' };
  if (given(body.contents)) throw wrongValue('generateContentRequest', 'given without contents');
  const { generateContentRequest: _, ...outer } = body;
  extras.put('$wrapped', outer);
  try {
    return { ...decodeChat(inner, params, extras), operation: 'count-tokens' };
  } catch (error) {
    throw inWrapper(error);
  }
}

/** Adds the wrapper to the path in an error of a wrapped request. */
function inWrapper(error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.param === undefined || error.param === 'model') return error;
  const param = `generateContentRequest.${error.param}`;
  return new GatewayError(error.code, error.message.replace(error.param, param), { param });
}

function encodeCount(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const writing = startWriting(request, target);
  const inner = encodeBody(request, writing);
  const outer = own(request.extra).$wrapped;
  const bare = writing.native ? outer === undefined : Object.keys(inner).every((key) => key === 'contents');
  const model = inner.model ?? (writing.native ? undefined : renamed('models/', target.model));
  const wrapped = {
    generateContentRequest: { ...inner, ...defined({ model }) },
    ...(isObject(outer) ? outer : {}),
  };
  return { ...methodPath(target.model, 'countTokens'), body: bare ? inner : wrapped };
}

function patchCount(body: JsonObject, { model }: Edits, traits: ModelTraits): JsonObject {
  const key =
    body.generate_content_request === undefined ? 'generateContentRequest' : 'generate_content_request';
  const inner = body[key];
  // Settings of the response do not affect the count.
  const named = defined({ model });
  return isObject(inner) ? { ...body, [key]: patch(inner, named, traits) } : patch(body, named, traits);
}
