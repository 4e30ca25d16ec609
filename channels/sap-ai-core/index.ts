/** SAP AI Core: models that run in deployments of a resource group, and its orchestration service. */
import { z } from 'zod';
import {
  defineChannel,
  secret,
  parseObject,
  type Upstream,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import { withAuthorization, bearerTokens, oauthTokens } from 'sluice/channel-kit';
import { overHttp } from '../_kit/http/http-channel.ts';
import { tellingRefusals } from '../_kit/http/refusals.ts';
import { Deployments, orchestratedModels } from './deployments.ts';
import { orchestrationChat, orchestrationFormat } from './orchestration.ts';

const serviceKey = z.object({
  clientid: z.string().min(1),
  clientsecret: z.string().min(1),
  url: z.url(),
  serviceurls: z.object({ AI_API_URL: z.url() }),
});

/**
 * SAP AI Core: models that run in deployments of a resource group, found by the names of their models. Those of Azure OpenAI and the open
 * ones that SAP serves are asked as they are; Claude, Gemini and Nova have other words there, and are reached through the orchestration
 * service, whose one deployment serves all of them.
 * https://github.com/SAP-docs/sap-artificial-intelligence/blob/main/docs/sap-ai-core/consume-generative-ai-models-bf0373b.md
 */
export default defineChannel({
  name: 'sap-ai-core',
  needsKey: false,
  models: 'discover',
  options: z.object({
    serviceKey: secret(
      z.union([
        serviceKey,
        z
          .string()
          .transform((text) => parseObject(text))
          .pipe(serviceKey),
      ]),
    )
      .optional()
      .describe('service key of the instance: an object, or its JSON text'),
    resourceGroup: z.string().min(1).default('default').describe('resource group of the deployments'),
    apiVersion: z
      .string()
      .regex(/^\d{4}-\d{2}-\d{2}(-preview)?$/, 'must be a date such as 2024-10-21')
      .default('2024-10-21')
      .describe('version of the Azure OpenAI API, for Azure OpenAI models'),
    orchestration: z
      .union([z.boolean(), z.record(z.string(), z.json())])
      .default(false)
      .describe(
        'true: sends chat through the orchestration service. An object does so with further modules: `filtering`, `masking` and others',
      ),
  }),
  setup(
    { serviceKey: own, resourceGroup, apiVersion, orchestration, ...options },
    tools: ChannelTools,
  ): ChannelParts {
    if (own === undefined && options.baseUrl === undefined)
      throw new Error(
        "serviceKey is missing. Give that of your instance: serviceKey: env('AICORE_SERVICE_KEY').",
      );
    const base = `${(options.baseUrl ?? own?.serviceurls.AI_API_URL ?? '').replace(/\/+$/, '')}/v2`;
    const account = own === undefined ? tools : signedIn(tools, own);
    const headers = { 'ai-resource-group': resourceGroup };
    const { open } = overHttp({ ...options, baseUrl: base }, account, {
      baseUrl: base,
      headers: () => headers,
      speaks: {},
    });
    const deployments = new Deployments(account.http, `${base}/lm/deployments`, headers);
    const sendTo = async (id: string, call: Call, request: UpstreamRequest): Promise<Upstream> =>
      open(call, {
        ...request,
        path: `/inference/deployments/${encodeURIComponent(id)}${request.path}`,
        query:
          request.format !== orchestrationFormat && ofAzure(request.model)
            ? { ...request.query, 'api-version': apiVersion }
            : request.query,
      });
    if (orchestration !== false) {
      const service = new Deployments(account.http, `${base}/lm/deployments`, headers, 'orchestration');
      return {
        speaks: { chat: [orchestrationFormat], embed: ['embeddings'] },
        codecs: { chat: orchestrationChat(orchestration === true ? {} : orchestration) },
        traits: () => ({ reasoning: 'none', outputLimitField: 'max_tokens', refuses: ['customTools'] }),
        listModels: () =>
          orchestratedModels(account.http, `${base}/lm/scenarios/foundation-models/models`, headers),
        open: async (call, request) =>
          sendTo(
            await (request.format === orchestrationFormat ? service.only() : deployments.idOf(request.model)),
            call,
            request,
          ),
      };
    }
    return {
      speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
      traits: (model) =>
        ofAzure(model)
          ? { refuses: ['topK', 'customTools'] }
          : { reasoning: 'none', outputLimitField: 'max_tokens', refuses: ['customTools'] },
      listModels: () => deployments.models(),
      async open(call, request) {
        return sendTo(await deployments.idOf(request.model), call, request);
      },
    };
  },
});

/** Returns true for models of Azure OpenAI. Names of all other models begin with their vendor and two dashes. */
function ofAzure(model: string): boolean {
  return !model.includes('--');
}

function signedIn(
  tools: ChannelTools,
  { clientid, clientsecret, url }: z.output<typeof serviceKey>,
): ChannelTools {
  const fetchToken = oauthTokens(tools.http, {
    name: 'SAP’s authorization server',
    url: `${url.replace(/\/+$/, '')}/oauth/token`,
    form: { grant_type: 'client_credentials', client_id: clientid, client_secret: clientsecret },
    credentialName: 'the service key in the config',
    hint: 'Check that the service key is complete and has not been deleted.',
  });
  return tellingRefusals(withAuthorization({ ...tools, keys: [] }, bearerTokens(fetchToken, tools.log)), {
    who: 'SAP AI Core',
    advice: 'Check that the service key is of this instance, and that the resource group is one of its own.',
  });
}
