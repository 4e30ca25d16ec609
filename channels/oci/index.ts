import { z } from 'zod';
import {
  defineChannel,
  isObject,
  parseObject,
  type HttpClient,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import { withAuthorization, RenewedCredentials } from 'sluice/channel-kit';
import { bearer, overHttp, traitsByModel } from '../_kit/http/http-channel.ts';
import { ociIdentity, ociSigners } from './identity.ts';
import { nativeFormat, ociNative } from './native.ts';
import { ociPrices } from './prices.ts';
import { ociHeaders } from './signature.ts';
import { tellingRefusals } from '../_kit/http/refusals.ts';

/** Milliseconds before the end of a session at which the next one is requested. */
const ahead = 5 * 60_000;

const compatible = ['chat-completions', 'responses'];

const traits = traitsByModel({
  '*': { formats: compatible, reasoning: 'none', refuses: ['customTools'] },
  'openai.*': { reasoning: 'effort' },
  'xai.grok-3-mini*': { reasoning: 'effort', efforts: ['low', 'high'] },
  // In the native API alone: https://docs.oracle.com/en-us/iaas/Content/generative-ai/cohere-models.htm
  'cohere.command-r*': {
    formats: [nativeFormat],
    outputLimitField: 'max_tokens',
    fetchesUrls: false,
    refuses: [
      'customTools',
      'choices',
      'user',
      'metadata',
      'serviceTier',
      'parallelTools',
      'logprobs',
      'topLogprobs',
      'verbosity',
      'promptCacheKey',
      'modalities',
      'cache',
    ],
  },
  'ocid1.generativeaiendpoint.*': {
    formats: [nativeFormat],
    outputLimitField: 'max_tokens',
    refuses: ['customTools', 'user', 'logprobs', 'topLogprobs', 'promptCacheKey', 'modalities', 'cache'],
  },
});

/**
 * Oracle Cloud Infrastructure Generative AI, by the endpoints that speak chat completions and responses. Requests are signed for an identity
 * and name the compartment that pays, or show an API key of the service, which has an address of its own and chats alone. Embeddings and
 * rerank are asked for in the native API, and chats with Cohere's R models and with endpoints of the account, which have no other.
 * https://docs.oracle.com/en-us/iaas/Content/generative-ai/openai-compatible-api.htm
 * https://docs.oracle.com/en-us/iaas/Content/generative-ai/oci-genai-auth.htm
 * https://docs.oracle.com/en-us/iaas/Content/generative-ai/api-keys.htm
 */
export default defineChannel({
  name: 'oci',
  prices: ociPrices,
  models: [
    'openai.*',
    'meta.*',
    'xai.*',
    'google.*',
    'mistral.*',
    'cohere.command-a*',
    'cohere.command-r*',
    'ocid1.generativeaiendpoint.*',
    'cohere.embed-*',
    'cohere.rerank*',
  ],
  needsKey: false,
  options: z.object({
    region: z
      .string()
      .regex(/^[a-z]{2}(-[a-z]+)+-\d+$/, 'must be the identifier of a region, such as us-chicago-1')
      .optional()
      .describe('identifier of the region, if `baseUrl` is not set'),
    compartment: z
      .string()
      .regex(/^ocid1\.(compartment|tenancy)\./, 'must be the OCID of a compartment')
      .optional()
      .describe('OCID of the compartment that is charged'),
    project: z
      .string()
      .startsWith('ocid1.generativeaiproject.')
      .optional()
      .describe('id of the project that owns responses and conversations'),
    identity: ociIdentity.optional().describe('OCI identity that signs requests, in place of a key'),
    endpoints: z
      .enum(['generic', 'cohere', 'cohere-v2'])
      .default('generic')
      .describe("chat format of models behind the account's own endpoints"),
  }),
  setup(
    { region, compartment, project, identity, endpoints, ...options },
    tools: ChannelTools,
  ): ChannelParts {
    if (region === undefined && options.baseUrl === undefined)
      throw new Error("region is missing. Name it: region: 'us-chicago-1'.");
    if (tools.keys.length > 0 && identity !== undefined)
      throw new Error('options "key" and "identity" are both set. Remove one of them.');
    const host = `https://inference.generativeai.${region ?? ''}.oci.oraclecloud.com`;
    const owner: Readonly<Record<string, string>> = {
      ...(compartment === undefined ? {} : { 'opc-compartment-id': compartment, compartmentid: compartment }),
      ...(project === undefined ? {} : { 'openai-project': project }),
    };
    const channelAt = (path: string, account: ChannelTools) =>
      overHttp(options, account, {
        baseUrl: host + path,
        headers: (key) => ({ ...owner, ...bearer(key) }),
        speaks: { chat: compatible },
        traits,
      });
    if (tools.keys.length > 0) return channelAt('/20231130/actions/v1', tools);

    if (compartment === undefined)
      throw new Error('compartment is missing. Give the OCID of the compartment that pays.');
    const shown = identity ?? { kind: 'profile', name: 'DEFAULT' };
    const signers = new RenewedCredentials({
      ask: ociSigners(shown, tools.http),
      expires: ({ expires }) => expires,
      ahead: () => ahead,
      log: tools.log,
    });
    const signed = withAuthorization(tools, async (request) => ociHeaders(request, await signers.get()));
    const account = tellingRefusals(signed, {
      who: 'OCI Generative AI',
      // OCI returns 404 for resources that an identity may not see.
      statuses: [401, 403, 404],
      advice:
        'Check that the identity is of this tenancy, that a policy lets it use generative-ai-family in the compartment, that the region has the model, and that the clock of this machine is right.',
    });
    const parts = channelAt('/openai/v1', account);
    const root = (options.baseUrl ?? host).replace(/\/openai\/v1\/?$/, '');
    const native = overHttp({ ...options, baseUrl: root }, account, {
      baseUrl: root,
      headers: () => owner,
      speaks: {},
    });
    return {
      ...parts,
      speaks: { chat: [...compatible, nativeFormat], embed: [nativeFormat], rerank: [nativeFormat] },
      codecs: ociNative(compartment, endpoints),
      listModels: () => listModels(account.http, options.baseUrl ?? host, compartment),
      async open(call, request) {
        const answer = await (request.format === nativeFormat ? native : parts).open(call, request);
        if (answer.status === 401) signers.forget();
        return answer;
      },
    };
  },
});

/** https://docs.oracle.com/en-us/iaas/api/#/en/generative-ai/20231130/ModelCollection/ListModels */
async function listModels(
  http: HttpClient,
  baseUrl: string,
  compartment: string,
): Promise<readonly string[]> {
  const url = new URL(baseUrl.replace('://inference.generativeai.', '://generativeai.'));
  url.pathname = '/20231130/models';
  url.searchParams.set('compartmentId', compartment);
  for (const what of ['CHAT', 'TEXT_EMBEDDINGS', 'TEXT_RERANK']) url.searchParams.append('capability', what);
  url.searchParams.set('lifecycleState', 'ACTIVE');
  const answer = await http.read({ url: url.href, headers: { accept: 'application/json' } });
  const items = parseObject(answer.toString())?.['items'];
  if (!Array.isArray(items)) throw new Error('The response is not a list of models.');
  const now = new Date().toISOString();
  return items.flatMap((item: unknown) => {
    if (!isObject(item) || typeof item['displayName'] !== 'string') return [];
    const { displayName, type, timeOnDemandRetired: retired } = item;
    // Tuned models have their own endpoints. Retired models run only on dedicated clusters.
    const served = type !== 'CUSTOM' && !(typeof retired === 'string' && retired <= now);
    return served ? [displayName] : [];
  });
}
