/** The moderations format: its endpoint and codec. */
import { missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { ModerationRequest, ModerationResult } from '../../model/moderation.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { given, requiredModel } from '../_shared/check.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { extraOf, spellingIn } from '../_shared/spelling.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import { noUsage, readTokenUsage } from '../_shared/usage.ts';
import type {
  Codec,
  EncodedRequest,
  EncodeTarget,
  Format,
  ReplyContext,
  WholeEncoder,
} from '../../sdk/format.ts';
import { throwIfError, unusableResponse } from '../_shared/upstream-error/index.ts';

const formatName = 'moderations';
const path = '/moderations';

/** Default model, as in the official API. */
const defaultModel = 'omni-moderation-latest';

const moderate: Codec<ModerationRequest> = defineCodec<ModerationRequest>({
  format: formatName,
  operation: 'moderate',
  path,
  marks: {
    usage: ['"usage":{', '"usage": {'],
    terminal: [],
    reply: ['results'],
  },
  peek: ({ model }) => ({ model: given(model) ? requiredModel(model) : defaultModel, stream: false }),
  // The model is added for other providers, because a body without one means the official default.
  passes: ({ model }) => given(model),
  decodeRequest,
  encodeRequest,
  decodeWhole,
  encodeWhole,
  // Moderations cost nothing unless the provider reports usage.
  estimate: ({ inputs }) => ({
    input: 0,
    output: 0,
    most: { input: inputs.reduce((sum, one) => sum + mostOf(one), 0) },
  }),
  usageTap: () => ({
    read(data) {
      const usage = parseObject(data)?.usage;
      return isObject(usage) ? readTokenUsage(usage, formatName) : undefined;
    },
  }),
});

/** Returns the most tokens of one input: of a text its bytes, of an image what the largest have. */
function mostOf(input: string | JsonObject): number {
  if (typeof input === 'string') return Buffer.byteLength(input) + 32;
  return isObject(input.image_url) ? 16_384 : Buffer.byteLength(JSON.stringify(input)) + 32;
}

function decodeRequest(body: JsonObject): ModerationRequest {
  const { model, input, ...rest } = body;
  return {
    operation: 'moderate',
    format: formatName,
    model: given(model) ? requiredModel(model) : defaultModel,
    inputs: readInputs(input),
    ...extraOf(formatName, rest, Array.isArray(input) ? {} : { single: true }),
  };
}

function readInputs(input: JsonValue | undefined): readonly (string | JsonObject)[] {
  if (!given(input)) throw missingValue('input');
  if (typeof input === 'string') return [input];
  if (!Array.isArray(input)) throw wrongType('input', 'a string, or a list of strings or parts');
  const list = input as readonly JsonValue[];
  if (list.length === 0) throw wrongValue('input', 'a list with at least one entry');
  return list.map((one, index) => {
    if (typeof one === 'string' || isObject(one)) return one;
    throw wrongType(`input[${index}]`, 'a string, or a part');
  });
}

function encodeRequest(request: ModerationRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { inputs, extra } = request;
  reportForeign(extra, formatName, undefined, drop);
  const { single } = spellingIn(extra, formatName);
  return {
    path,
    body: { model, input: single === true ? (inputs[0] ?? '') : inputs, ...extra?.[formatName] },
  };
}

function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { id, model, results, usage, ...rest } = body;
  if (!Array.isArray(results) || !(results as readonly JsonValue[]).every(isObject)) {
    throw unusableResponse('sent JSON that is not a moderation result');
  }
  const result: ModerationResult = {
    results: results as readonly JsonObject[],
    ...(typeof id === 'string' ? { id } : {}),
    ...extraOf(formatName, rest),
  };
  return [
    { type: 'head', id: typeof id === 'string' ? id : '', model: typeof model === 'string' ? model : '' },
    { type: 'result', value: result },
    { type: 'usage', usage: isObject(usage) ? readTokenUsage(usage, formatName) : noUsage },
  ];
}

function encodeWhole({ model, requestId }: ReplyContext): WholeEncoder {
  let result: ModerationResult | undefined;
  return {
    event(event) {
      if (event.type === 'result') result = event.value as ModerationResult;
    },
    end() {
      if (result === undefined) throw unusableResponse('gave no verdict');
      return {
        id: result.id ?? `modr-${requestId}`,
        model,
        results: result.results,
        ...result.extra?.[formatName],
      };
    },
  };
}

const moderations: Format = {
  name: formatName,
  routes: [{ method: 'POST', path: '/v1/moderations', operation: 'moderate' }],
  codecs: { moderate },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** Verdicts on content: `/v1/moderations`. */
export default moderations;
