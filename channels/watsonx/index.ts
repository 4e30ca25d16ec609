import { z } from 'zod';
import {
  defineChannel,
  secretUrl,
  isObject,
  parseObject,
  type ModelTraits,
  type UpstreamRequest,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import { withAuthorization, bearerTokens, oauthTokens } from 'sluice/channel-kit';
import { overHttp } from '../_kit/http/http-channel.ts';
import { chat, chatFormat, embed, embedFormat, rerank, rerankFormat } from './codecs.ts';

/** The day of the API that requests name. */
const version = '2025-02-06';

/** Traits of models without reasoning: settings that the chat API lacks are refused. */
const traits: ModelTraits = {
  reasoning: 'none',
  outputLimitField: 'max_tokens',
  refuses: [
    'customTools',
    'parallelTools',
    'user',
    'metadata',
    'serviceTier',
    'verbosity',
    'promptCacheKey',
    'modalities',
    'topK',
    'cache',
  ],
};

/** Traits of reasoning models. https://ibm.github.io/watsonx-ai-node-sdk/interfaces/1_7_x.WatsonXAI.DeploymentsTextChatStreamParams.html */
const thinking: ModelTraits = { reasoning: 'effort', efforts: ['low', 'medium', 'high'] };

/**
 * IBM watsonx.ai. An API key is changed for a token of IBM Cloud IAM; every request names a project or a deployment space.
 * https://www.ibm.com/docs/en/watsonx/saas?topic=resources-rest-api
 * https://dataplatform.cloud.ibm.com/docs/content/wsj/analyze-data/fm-credentials.html
 */
export default defineChannel({
  name: 'watsonx',
  catalogue: ['watsonx'],
  models: [
    'ibm/*',
    'meta-llama/*',
    'mistralai/*',
    'openai/gpt-oss-*',
    'cross-encoder/*',
    'intfloat/*',
    'sentence-transformers/*',
  ],
  options: z.object({
    region: z
      .string()
      .regex(/^[a-z]{2}-[a-z]+$/, 'must be a region, such as us-south or eu-de')
      .default('us-south')
      .describe('region of the project'),
    project: z.string().min(1).optional().describe('id of the project that is charged'),
    space: z.string().min(1).optional().describe('id of a deployment space, in place of a project'),
    tokenUrl: secretUrl(z.url())
      .default('https://iam.cloud.ibm.com/identity/token')
      .describe('URL that exchanges API keys for tokens, for accounts on private endpoints'),
  }),
  setup({ region, project, space, tokenUrl, ...options }, tools: ChannelTools): ChannelParts {
    if (project !== undefined && space !== undefined)
      throw new Error('project and space are both given. Name the one that pays.');
    if (project === undefined && space === undefined && options.baseUrl === undefined)
      throw new Error('project is missing. Name the project, or the deployment space as space.');
    const owner = {
      ...(project === undefined ? {} : { project_id: project }),
      ...(space === undefined ? {} : { space_id: space }),
    };
    // Each key has its own tokens.
    const accounts = tools.keys.map((key) => {
      const ask = oauthTokens(tools.http, {
        name: 'IBM Cloud IAM',
        url: tokenUrl,
        form: { grant_type: 'urn:ibm:params:oauth:grant-type:apikey', apikey: key },
        credentialName: 'the API key in the config',
        hint: 'Check that the key is complete, has not been deleted, and belongs to this account.',
      });
      return withAuthorization({ ...tools, keys: [] }, bearerTokens(ask, tools.log));
    });
    const baseUrl = `https://${region}.ml.cloud.ibm.com`;
    const parts = accounts.map((account) =>
      overHttp(options, account, { baseUrl, headers: () => ({}), speaks: {} }),
    );
    const [first] = accounts;
    return {
      speaks: { chat: [chatFormat], embed: [embedFormat], rerank: [rerankFormat] },
      codecs: { chat, embed, rerank },
      traits: (model) => (model.includes('gpt-oss') ? { ...traits, ...thinking } : traits),
      ...(first === undefined ? {} : { listModels: () => listModels(first, options.baseUrl ?? baseUrl) }),
      open(call, request) {
        const part = parts[call.target?.key.index ?? 0];
        if (part === undefined) throw new Error('The channel has no key.');
        return part.open(call, { ...request, query: { version }, body: owned(request, owner) });
      },
    };
  },
});

/** Returns the body with who pays for it. */
function owned({ body }: UpstreamRequest, owner: Readonly<Record<string, string>>): string {
  const parsed = typeof body === 'string' || Buffer.isBuffer(body) ? parseObject(body.toString()) : undefined;
  return JSON.stringify({ ...parsed, ...owner });
}

/** Returns the foundation models of the region, in one page: there are fewer than two hundred. */
async function listModels({ http }: ChannelTools, baseUrl: string): Promise<readonly string[]> {
  const url = new URL(`${baseUrl.replace(/\/+$/, '')}/ml/v1/foundation_model_specs`);
  url.searchParams.set('version', version);
  url.searchParams.set('limit', '200');
  const answer = await http.read({ url: url.href, headers: { accept: 'application/json' } });
  const resources = parseObject(answer.toString())?.['resources'];
  if (!Array.isArray(resources)) throw new Error('The response is not a list of models.');
  return resources.flatMap((one: unknown) =>
    isObject(one) && typeof one['model_id'] === 'string' ? [one['model_id']] : [],
  );
}
