import { z } from 'zod';
import { of } from 'rxjs';
import {
  countTokens,
  defineChannel,
  isChat,
  type ChannelOptions,
  type JsonObject,
  type Upstream,
  type UpstreamRequest,
} from 'sluice';
import { isObject, parseObject, type Call, type ChannelParts, type ChannelTools } from 'sluice/internal';
import { ordinaryHeaders } from './_http.ts';
import { awsHeaders } from './_aws-signature.ts';
import { claudeIn, invocation } from './_bedrock-claude.ts';
import { controlPlane, listBedrockModels } from './_bedrock-list.ts';
import { formatName as invokeFormat, invokeCodecs } from './_bedrock-models.ts';
import { bedrockEndpoint, placesOf, regionsOf, type Place } from './_bedrock-places.ts';
import { unframed, withNumber } from './_bedrock-streams.ts';
import { bedrockTraits, geographies, ofMaker } from './_bedrock-traits.ts';

const options = z.object({
  region: z.string().min(1).optional().describe('where the models are, as `us-east-1`'),
  regions: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe('several regions: they take turns, and one that fails is left alone for a while'),
  regionOrder: z
    .enum(['turns', 'preference'])
    .default('turns')
    .describe('preference: a later region is asked only where none before it can answer'),
  profile: z.string().min(1).optional().describe('a profile of the shared files'),
  roleArn: z.string().startsWith('arn:').optional().describe('a role that is assumed'),
  externalId: z.string().min(1).optional(),
  guardrail: z
    .strictObject({ id: z.string().min(1), version: z.string().min(1), trace: z.boolean().default(false) })
    .optional()
    .describe('a guardrail for every chat that names none'),
});

type Options = z.output<typeof options>;

/** How names of models begin: with their maker, or with the part of the world that answers, or as an address. */
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

/**
 * Amazon Bedrock. Chat through Converse; Claude in its own words through InvokeModel. A `key` is an API key of Bedrock's, or
 * `ACCESS|SECRET` (`ACCESS|SECRET|SESSION`); without one the default chain of AWS finds credentials.
 */
export default defineChannel({
  name: 'bedrock',
  catalogue: ['bedrock', 'bedrock_converse'],
  models: [...makers.map((maker) => `${maker}.*`), ...geographies.map((part) => `${part}.*`), 'arn:aws*'],
  needsKey: false,
  options,
  setup(chosen, tools: ChannelTools): ChannelParts {
    const places = placesOf(chosen, tools);
    return {
      speaks: {
        chat: ['converse', 'messages', 'invoke'],
        'count-tokens': ['converse'],
        embed: [invokeFormat],
        rerank: [invokeFormat],
        'generate-image': [invokeFormat],
        'edit-image': [invokeFormat],
        'vary-image': [invokeFormat],
      },
      codecs: invokeCodecs,
      ...regionsOf(chosen, places),
      traits: bedrockTraits,
      // What is said of none of them here: they think, and nobody knows how they are told to.
      thinking: { reasoning: 'none', thinksByDefault: true, stopsThinking: false },
      listModels: () => listModels(chosen, tools, places),
      open: (call, request) =>
        send(call, request, { chosen, tools, place: places[call.target?.key.index ?? 0] ?? places[0] }),
    };
  },
});

/** Asks the first region that answers. */
async function listModels(
  { baseUrl }: ChannelOptions,
  { http }: ChannelTools,
  places: readonly Place[],
): Promise<readonly string[]> {
  let failure: unknown = new Error('The channel has no place to ask.');
  for (const place of places) {
    const { region } = place;
    const base = controlPlane((baseUrl ?? bedrockEndpoint(region)).replace(/\/+$/, ''));
    const prove = async (url: URL): Promise<Readonly<Record<string, string>>> => {
      const own = { accept: 'application/json' };
      if (place.credentials === undefined) return { ...own, authorization: `Bearer ${place.apiKey ?? ''}` };
      const signed = await awsHeaders(
        { method: 'GET', url, headers: own, body: '' },
        await place.credentials(),
        { service: 'bedrock', region },
      );
      return { ...own, ...signed };
    };
    try {
      // oxlint-disable-next-line no-await-in-loop -- the next is asked where this one fails
      return await listBedrockModels(http, base, prove);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

interface Sending {
  readonly chosen: ChannelOptions & Options;
  readonly tools: ChannelTools;
  readonly place: Place | undefined;
}

async function send(
  call: Call,
  request: UpstreamRequest,
  { chosen, tools, place }: Sending,
): Promise<Upstream> {
  if (place === undefined) throw new Error('The channel has no place to ask.');
  // Models that cannot be counted there are counted here.
  if (request.operation === 'count-tokens' && claudeIn(request.model) === undefined) return counted(call);
  const { path, body, headers } = asked(request, chosen);
  // An address of a model names its region.
  const region = /^arn:[\w-]+:bedrock:([\w-]+):/.exec(request.model)?.[1] ?? place.region;
  const base = (chosen.baseUrl ?? bedrockEndpoint(region)).replace(/\/+$/, '');
  const url = new URL(base + path);
  const own = { 'content-type': 'application/json', ...headers };
  const proof =
    place.credentials === undefined
      ? { authorization: `Bearer ${place.apiKey ?? ''}` }
      : await awsHeaders({ method: 'POST', url, headers: own, body }, await place.credentials(), {
          service: 'bedrock',
          region,
        });
  const answer = await tools.http.send(call, {
    url: url.href,
    method: 'POST',
    headers: { ...ordinaryHeaders({ stream: false }), accept: '*/*', ...own, ...proof },
    body,
  });
  if (answer.status === 401 || answer.status === 403) place.forget();
  place.told?.(answer);
  if (request.operation === 'embed') return withTokens(answer);
  return unframed(answer, request.format);
}

/** What a model does not count, Bedrock tells in a header. */
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

interface Asked {
  readonly path: string;
  readonly body: Buffer | string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The request as Bedrock's API has it, with the operator's guardrail. */
function asked(request: UpstreamRequest, { guardrail }: Options): Asked {
  if (request.format === 'messages') {
    const { method, body } = invocation(request);
    const path = `/model/${encodeURIComponent(request.model)}/${method}`;
    return { path, body, headers: guardrailHeaders(guardrail) };
  }
  const { body } = request;
  // Counts are asked of the maker's model itself, not of a profile that stands for it in a part of the world.
  const path =
    request.operation === 'count-tokens'
      ? `/model/${encodeURIComponent(ofMaker(request.model))}/count-tokens`
      : request.path;
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) throw new Error('Bedrock takes no forms.');
  if (request.format === 'invoke') return { path, body, headers: guardrailHeaders(guardrail) };
  if (guardrail === undefined || request.operation !== 'chat') return { path, body, headers: {} };
  return { path, body: guarded(body, guardrail), headers: {} };
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
