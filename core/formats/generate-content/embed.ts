import { unsupportedContent, missingValue, wrongValue } from '../../sdk/errors.ts';
import type { EmbedInput, EmbedPurpose, EmbedRequest, EmbedResult } from '../../model/embed.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import {
  given,
  optionalArray,
  optionalNumber,
  optionalObject,
  optionalString,
  readObjects,
  requiredObject,
} from '../_shared/check.ts';
import { estimateEmbed, joinEmbed, splitEmbed } from '../_shared/embed.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import { extraOf } from '../_shared/spelling.ts';
import { asNumbers, checkCount, readVectors } from '../_shared/vectors.ts';
import type {
  Codec,
  EncodedRequest,
  EncodeTarget,
  ReplyContext,
  RouteParams,
  WholeEncoder,
} from '../../sdk/format.ts';
import { modelOf } from './request-in/index.ts';
import { methodPath } from './request-out/index.ts';
import { renamed } from './patch.ts';
import { tapping } from '../_shared/usage.ts';
import { readUsage, writeUsage } from './usage.ts';
import { decodePredict, predictions } from './predict.ts';
import { formatName, official, purposes } from './wire.ts';
import { throwIfError, unusableResponse } from '../_shared/upstream-error/index.ts';
import { defined } from '../_shared/fields.ts';

/** Most requests of one batch at the provider, and of a client's, which is asked for in several. */
const mostAtOnce = 100;
const mostRequests = 2048;

/** `:embedContent`, `:batchEmbedContents` and `:predict`: providers are always asked by the second, which has room for one as well. */
export const embed: Codec<EmbedRequest> = defineCodec<EmbedRequest>({
  format: formatName,
  operation: 'embed',
  path: '',
  marks: { usage: ['"usageMetadata"'], terminal: [] },
  toleratesComments: false,
  peek: (_body, params) => ({ model: modelOf(params), stream: false }),
  passes: () => false,
  decodeRequest,
  encodeRequest,
  decodeWhole,
  encodeWhole,
  estimate: estimateEmbed,
  split: (request) => splitEmbed(request, mostAtOnce),
  join: joinEmbed,
  usageTap: tapping('"usageMetadata"', ({ usageMetadata }) =>
    isObject(usageMetadata) ? readUsage(usageMetadata) : undefined,
  ),
});

/** Decodes one request of a batch. */
interface One {
  readonly input: EmbedInput;
  readonly purpose: EmbedPurpose | undefined;
  readonly title: string | undefined;
  readonly dimensions: number | undefined;
}

function decodeRequest(body: JsonObject, params: RouteParams): EmbedRequest {
  if (given(body.instances)) return decodePredict(body, modelOf(params), mostRequests);
  const batch = optionalArray(body.requests, 'requests');
  if (batch?.length === 0) throw wrongValue('requests', 'a list with at least one request');
  if (batch !== undefined && batch.length > mostRequests)
    throw wrongValue('requests', `a list of at most ${mostRequests} requests`);
  const read =
    batch === undefined
      ? [readOne(body, '')]
      : readObjects(batch, 'requests', (one, at) => readOne(one, `${at}.`));
  const [first] = read;
  if (first === undefined) throw missingValue('content');
  const { requests: _, ...outer } = body;
  return {
    operation: 'embed',
    format: formatName,
    model: modelOf(params),
    inputs: read.map((one) => withDifferences(one, first)),
    ...defined({ dimensions: first.dimensions, purpose: first.purpose, title: first.title }),
    ...(batch === undefined ? {} : extraOf(formatName, outer)),
  };
}

function readOne(wire: JsonObject, at: string): One {
  const body = official(wire, 'embedRequest');
  // Newer clients put the settings into an object of their own.
  const config = optionalObject(body.embedContentConfig, `${at}embedContentConfig`) ?? {};
  const { taskType, title, outputDimensionality } = { ...config, ...body };
  const task = optionalString(taskType, `${at}taskType`);
  const content = requiredObject(body.content, `${at}content`);
  return {
    input: { ...readContent(content, at), extra: { [formatName]: { $raw: wire } } },
    purpose: purposes.find(([, word]) => word === task)?.[0],
    title: optionalString(title, `${at}title`),
    dimensions: optionalNumber(outputDimensionality, `${at}outputDimensionality`, { min: 1, integer: true }),
  };
}

function readContent(content: JsonObject, at: string): EmbedInput {
  const parts = optionalArray(content.parts, `${at}content.parts`) ?? [];
  if (parts.length === 0) throw missingValue(`${at}content.parts`);
  const texts = readObjects(parts, `${at}content.parts`, ({ text }, path) =>
    optionalString(text, `${path}.text`),
  );
  if (texts.every((text) => text !== undefined)) return { type: 'text', text: texts.join('\n') };
  return { type: 'opaque', format: formatName, value: content };
}

/** Keeps settings that differ between the requests of a batch, because other formats have one setting for all. */
function withDifferences({ input, purpose, title, dimensions }: One, first: One): EmbedInput {
  const differing: JsonObject = {
    ...(purpose === first.purpose ? {} : { taskType: purpose ?? null }),
    ...(title === first.title ? {} : { title: title ?? null }),
    ...(dimensions === first.dimensions ? {} : { outputDimensionality: dimensions ?? null }),
  };
  return { ...input, extra: { [formatName]: { ...input.extra?.[formatName], ...differing } } };
}

function encodeRequest(request: EmbedRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { inputs, dimensions, purpose, title, user, extra, format } = request;
  reportForeign(extra, formatName, undefined, drop);
  if (user !== undefined) drop('user');
  const taskType = purposes.find(([word]) => word === purpose)?.[1];
  const settings: JsonObject = defined({ taskType, title, outputDimensionality: dimensions });
  const requests = inputs.map((input, index): JsonObject => {
    const raw = input.extra?.[formatName]?.$raw;
    if (format === formatName && isObject(raw)) return { ...raw, model: renamed('models/', model) };
    return {
      model: renamed('models/', model),
      content: { parts: [{ text: textOf(input, index) }] },
      ...settings,
    };
  });
  return { ...methodPath(model, 'batchEmbedContents'), body: { requests, ...extra?.[formatName] } };
}

function textOf(input: EmbedInput, index: number): string {
  if (input.type === 'text') return input.text;
  throw unsupportedContent(
    `input[${index}]`,
    input.type === 'tokens' ? 'a list of tokens' : 'this input',
    formatName,
  );
}

function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { embedding, embeddings, usageMetadata, ...rest } = body;
  const list = Array.isArray(embeddings) ? (embeddings as readonly JsonValue[]) : [embedding];
  const vectors = readVectors(list.map((one) => (isObject(one) ? one.values : undefined)));
  const events: GatewayEvent[] = [{ type: 'result', value: { vectors, ...extraOf(formatName, rest) } }];
  if (isObject(usageMetadata)) events.push({ type: 'usage', usage: readUsage(usageMetadata) });
  return events;
}

function encodeWhole({ body }: ReplyContext): WholeEncoder {
  let result: EmbedResult | undefined;
  let used: Usage | undefined;
  return {
    event(event) {
      if (event.type === 'result') result = event.value as EmbedResult;
      if (event.type === 'usage') used = event.usage;
    },
    end() {
      if (result === undefined) throw unusableResponse('gave no embeddings');
      const single = given(body.content) ? 1 : undefined;
      const list = body.requests ?? body.instances;
      checkCount(result, Array.isArray(list) ? list.length : single);
      if (given(body.instances)) return predictions(result, used);
      const vectors = result.vectors.map((vector) => ({ values: asNumbers(vector) }));
      const [only = { values: [] }] = vectors;
      const embeddings = given(body.requests) ? { embeddings: vectors } : { embedding: only };
      const usage = used === undefined ? {} : { usageMetadata: writeUsage(used) };
      return { ...embeddings, ...usage, ...result.extra?.[formatName] };
    },
  };
}
