/** Amazon Bedrock: Converse, InvokeModel, its OpenAI-compatible endpoints, images, embeddings and reranking. */
import { z } from 'zod';
import { of } from 'rxjs';
import {
  countTokens,
  defineChannel,
  isChat,
  isObject,
  parseObject,
  type ChannelOptions,
  type JsonObject,
  type Upstream,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import { ordinaryHeaders } from '../_kit/http/http-channel.ts';
import {
  awsEndpoint,
  regionOptions,
  accessesOf,
  regionsOf,
  type RegionAccess,
} from '../_kit/identity/aws-regions.ts';
import { awsHeaders, type AwsRequest } from '../_kit/identity/aws-signature.ts';
import { claudeIn, invocation } from './claude.ts';
import { controlPlane, listBedrockModels } from './list.ts';
import { formatName as invokeFormat, invokeCodecs } from './models.ts';
import { mantleEndpoint, mantleRequest, mantleService, mantleTraits } from './openai.ts';
import { unframed, withNumber } from './streams.ts';
import { bedrockTraits, geographies, ofMaker } from './traits.ts';
import { readModelList } from '../_kit/http/model-list.ts';

const options = z.object({
  ...regionOptions,
  endpoint: z
    .enum(['runtime', 'mantle'])
    .default('runtime')
    .describe(
      '`runtime`: the native API of Bedrock. `mantle`: the endpoint that serves models through the OpenAI and Anthropic APIs',
    ),
  guardrail: z
    .strictObject({
      id: z.string().min(1).describe('id or ARN of the guardrail'),
      version: z.string().min(1).describe('version of the guardrail, or `DRAFT`'),
      trace: z.boolean().default(false).describe('true: adds the findings of the guardrail to responses'),
    })
    .optional()
    .describe('guardrail for chat requests that name none'),
});

type Options = z.output<typeof options>;

/** Prefixes of model names: makers, regions or ARNs. */
const makers = [
  'ai21',
  'amazon',
  'anthropic',
  'cohere',
  'deepseek',
  'google',
  'luma',
  'meta',
  'minimax',
  'mistral',
  'moonshot',
  'moonshotai',
  'nvidia',
  'openai',
  'qwen',
  'stability',
  'twelvelabs',
  'writer',
  'xai',
  'zai',
];

/** Names in the catalogue. Mantle has prices of its own, and names without versions. */
const atRuntime = ['bedrock', 'bedrock_converse'];
const atMantle = ['bedrock_mantle'];

/**
 * Amazon Bedrock. Chat through Converse; Claude in its own words through InvokeModel. A `key` is an API key of Bedrock's, or
 * `ACCESS|SECRET` (`ACCESS|SECRET|SESSION`); without one the default chain of AWS finds credentials.
 */
export default defineChannel({
  name: 'bedrock',
  catalogue: [...atRuntime, ...atMantle],
  models: [...makers.map((maker) => `${maker}.*`), ...geographies.map((part) => `${part}.*`), 'arn:aws*'],
  needsKey: false,
  options,
  setup(chosen, tools: ChannelTools): ChannelParts {
    const accesses = accessesOf(chosen, tools, 'bedrock');
    const open: ChannelParts['open'] = (call, request) =>
      send(call, request, { chosen, tools, access: accesses[call.target?.key.index ?? 0] ?? accesses[0] });
    const listModels = (): Promise<readonly string[]> => listAt(chosen, tools, accesses);
    if (chosen.endpoint === 'mantle') {
      if (chosen.guardrail !== undefined)
        throw new Error("option 'guardrail' requires the endpoint 'runtime'. Remove one of the two options.");
      return {
        catalogue: [...atMantle, ...atRuntime],
        speaks: { chat: ['chat-completions', 'responses', 'messages'], 'count-tokens': ['messages'] },
        ...regionsOf(chosen, accesses),
        traits: mantleTraits,
        listModels,
        open,
      };
    }
    return {
      catalogue: atRuntime,
      speaks: {
        chat: ['converse', 'messages', 'invoke', 'responses', 'chat-completions'],
        'count-tokens': ['converse'],
        embed: [invokeFormat],
        rerank: [invokeFormat],
        'generate-image': [invokeFormat],
        'edit-image': [invokeFormat],
        'vary-image': [invokeFormat],
      },
      codecs: invokeCodecs,
      ...regionsOf(chosen, accesses),
      traits: bedrockTraits,
      // Other reasoning models reason by default, and it is not documented how to control that.
      thinking: { reasoning: 'none', thinksByDefault: true, stopsThinking: false },
      listModels,
      open,
    };
  },
});

/** Lists the models of the first region that responds. */
async function listAt(
  chosen: ChannelOptions & Options,
  { http }: ChannelTools,
  accesses: readonly RegionAccess[],
): Promise<readonly string[]> {
  let failure: unknown = new Error('The channel has no region for this request.');
  for (const access of accesses) {
    const { service, base } = endpointOf(chosen, access.region);
    const prove = async (url: URL): Promise<Readonly<Record<string, string>>> => {
      const own = { accept: 'application/json' };
      return { ...own, ...(await proofOf(access, { method: 'GET', url, headers: own, body: '' }, service)) };
    };
    try {
      // oxlint-disable no-await-in-loop -- the next is asked where this one fails
      if (chosen.endpoint !== 'mantle') return await listBedrockModels(http, controlPlane(base), prove);
      const list = `${base}/v1/models`;
      const names = await readModelList(http, list, await prove(new URL(list)));
      // oxlint-enable no-await-in-loop
      return names.filter((name) => typeof name === 'string');
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Address of a region, and the service name for signatures. */
function endpointOf(
  { endpoint, baseUrl }: ChannelOptions & Options,
  region: string,
): { readonly base: string; readonly service: string } {
  const isMantle = endpoint === 'mantle';
  const usual = isMantle ? mantleEndpoint(region) : awsEndpoint('bedrock-runtime', region);
  return { base: (baseUrl ?? usual).replace(/\/+$/, ''), service: isMantle ? mantleService : 'bedrock' };
}

/** Returns an API key, or a signature. */
async function proofOf(
  { apiKey, credentials, region }: RegionAccess,
  request: AwsRequest,
  service: string,
): Promise<Readonly<Record<string, string>>> {
  if (credentials === undefined) return { authorization: `Bearer ${apiKey ?? ''}` };
  return awsHeaders(request, await credentials(), { service, region });
}

interface Sending {
  readonly chosen: ChannelOptions & Options;
  readonly tools: ChannelTools;
  readonly access: RegionAccess | undefined;
}

async function send(
  call: Call,
  request: UpstreamRequest,
  { chosen, tools, access }: Sending,
): Promise<Upstream> {
  if (access === undefined) throw new Error('The channel has no region for this request.');
  // Models that cannot be counted there are counted here.
  const isMantle = chosen.endpoint === 'mantle';
  if (request.operation === 'count-tokens' && !isMantle && claudeIn(request.model) === undefined)
    return counted(call);
  const { path, body, headers } = bedrockRequest(request, chosen);
  // An address of a model names its region.
  const region = /^arn:[\w-]+:bedrock:([\w-]+):/.exec(request.model)?.[1] ?? access.region;
  const { base, service } = endpointOf(chosen, region);
  const url = new URL(base + path);
  const own = { 'content-type': 'application/json', ...headers };
  const proof = await proofOf({ ...access, region }, { method: 'POST', url, headers: own, body }, service);
  const answer = await tools.http.send(call, {
    url: url.href,
    method: 'POST',
    headers: { ...ordinaryHeaders({ stream: false }), accept: '*/*', ...own, ...proof },
    body,
  });
  if (answer.status === 401 || answer.status === 403) access.forget();
  access.logRefusal?.(answer);
  if (request.operation === 'embed') return withTokens(answer);
  return unframed(answer, request.format);
}

/** Adds the token count from the response header, which Bedrock sends where the model does not report one. */
function withTokens(answer: Upstream): Upstream {
  const count = Number(answer.headers['x-amzn-bedrock-input-token-count'] ?? Number.NaN);
  if (Number.isNaN(count)) return answer;
  return withNumber(answer, 'inputTextTokenCount', count);
}

async function counted(call: Call): Promise<Upstream> {
  if (!isChat(call.request)) throw new Error('Only conversations are counted.');
  const inputTokens = await countTokens(call.request);
  return { status: 200, headers: {}, bytes: of(Buffer.from(JSON.stringify({ inputTokens }))) };
}

interface BedrockRequest {
  readonly path: string;
  readonly body: Buffer | string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the request as Bedrock's API has it, with the operator's guardrail. */
function bedrockRequest(request: UpstreamRequest, { guardrail, endpoint }: Options): BedrockRequest {
  if (endpoint === 'mantle') return { ...mantleRequest(request), body: bodyOf(request) };
  // https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html
  if (request.format === 'chat-completions' || request.format === 'responses')
    return { path: `/openai/v1${request.path}`, body: bodyOf(request), headers: guardrailHeaders(guardrail) };
  if (request.format === 'messages') {
    const { method, body } = invocation(request);
    const path = `/model/${encodeURIComponent(request.model)}/${method}`;
    return { path, body, headers: guardrailHeaders(guardrail) };
  }
  const body = bodyOf(request);
  // Token counts are requested from the foundation model, not from an inference profile of a region.
  const path =
    request.operation === 'count-tokens'
      ? `/model/${encodeURIComponent(ofMaker(request.model))}/count-tokens`
      : request.path;
  if (request.format === 'invoke') return { path, body, headers: guardrailHeaders(guardrail) };
  if (guardrail === undefined || request.operation !== 'chat') return { path, body, headers: {} };
  return { path, body: guarded(body, guardrail), headers: {} };
}

function bodyOf({ body }: UpstreamRequest): Buffer | string {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) throw new Error('Bedrock does not accept forms.');
  return body;
}

function guardrailHeaders(guardrail: Options['guardrail']): Readonly<Record<string, string>> {
  if (guardrail === undefined) return {};
  return {
    'x-amzn-bedrock-guardrailidentifier': guardrail.id,
    'x-amzn-bedrock-guardrailversion': guardrail.version,
    ...(guardrail.trace ? { 'x-amzn-bedrock-trace': 'ENABLED' } : {}),
  };
}

function guarded(
  body: Buffer | string,
  { id, version, trace }: NonNullable<Options['guardrail']>,
): Buffer | string {
  const parsed = parseObject(body.toString());
  if (parsed === undefined || isObject(parsed.guardrailConfig)) return body;
  const guardrailConfig: JsonObject = {
    guardrailIdentifier: id,
    guardrailVersion: version,
    trace: trace ? 'enabled' : 'disabled',
  };
  return JSON.stringify({ ...parsed, guardrailConfig });
}
