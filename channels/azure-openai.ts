/** Channel for deployments of Azure OpenAI, with an API key or an identity of Microsoft Entra ID. */
import { z } from 'zod';
import { defineChannel, type ModelTraits, type ChannelParts, type ChannelTools } from 'sluice';
import { withAuthorization, bearerTokens } from 'sluice/channel-kit';
import { azureDeployments, azureListing } from './_kit/http/azure-deployments.ts';
import { entraIdentity, entraTokens, type EntraIdentity } from './_kit/identity/entra.ts';
import { overHttp } from './_kit/http/http-channel.ts';
import { overSockets } from './_kit/http/realtime.ts';
import { tellingRefusals } from './_kit/http/refusals.ts';
import { isOpenai, onV1, openaiTraits, thinking } from './_kit/dialect/openai-models.ts';

/** Deployments have names of their own, which say nothing of the model: the config's `traits` tell more. */
const traits: ModelTraits = { refuses: ['topK', 'customTools'], serverTools: 'responses' };

/** Traits of a deployment. Where its base model or public name is that of a model of OpenAI, that model's apply. */
function traitsOf(model: string): ModelTraits {
  const name = model.replace(/^.*\//, '');
  return isOpenai(name) ? onV1(openaiTraits(name)) : traits;
}

const headers = (key: string | undefined): Readonly<Record<string, string>> =>
  key === undefined ? {} : { 'api-key': key };

/**
 * Azure OpenAI: the models of a resource are its deployments, and `models` must name them. `baseUrl` is the resource's endpoint,
 * `https://NAME.openai.azure.com`; `resource` is the name alone. With `apiVersion` a date, the deployment stands in the path or the query,
 * as it did before the v1 API. Requests show a key, or a token of `identity`, which also lists the deployments of `resourceId`.
 */
export default defineChannel({
  name: 'azure-openai',
  catalogue: ['azure'],
  needsKey: false,
  options: z.object({
    identity: entraIdentity
      .optional()
      .describe('Microsoft Entra identity that signs requests, in place of a key'),
    resource: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]*$/i, 'must be the name of a resource, without dots')
      .optional()
      .describe('name of the resource, if `baseUrl` is not set'),
    apiVersion: z
      .string()
      .regex(
        /^(v1|preview|\d{4}-\d{2}-\d{2}(-preview)?)$/,
        'must be v1, preview or a date such as 2024-10-21',
      )
      .default('v1')
      .describe('version of the API'),
    ...azureListing,
  }),
  setup(
    { resource, apiVersion, identity, resourceId, managementUrl, ...options },
    given: ChannelTools,
  ): ChannelParts {
    const tools = signedIn(given, identity);
    const endpoint = endpointOf(options.baseUrl, resource);
    const listModels = azureDeployments(given, { resourceId, managementUrl, identity });
    const listed = listModels === undefined ? {} : { listModels };
    if (/^\d/.test(apiVersion)) return { ...dated(endpoint, apiVersion, options, tools), ...listed };
    const base = new URL(`${endpoint}/openai/v1`);
    if (apiVersion === 'preview') base.searchParams.set('api-version', apiVersion);
    const { open, connect } = {
      ...overHttp({ ...options, baseUrl: base.href }, tools, { baseUrl: base.href, headers, speaks: {} }),
      connect: overSockets({ base, headers }, tools),
    };
    return {
      ...listed,
      speaks: {
        chat: ['chat-completions', 'responses'],
        compact: ['responses'],
        realtime: ['realtime'],
        embed: ['embeddings'],
        'generate-image': ['images'],
        'edit-image': ['images'],
        transcribe: ['audio'],
        'translate-audio': ['audio'],
        speak: ['audio'],
      },
      // https://learn.microsoft.com/azure/foundry/openai/latest: a batch names deployments of the kind that runs batches.
      keeps: { 'chat-completions': ['files', 'batches', 'vector_stores', 'containers'] },
      // https://learn.microsoft.com/azure/ai-foundry/openai/how-to/batch
      batchShare: 0.5,
      traits: traitsOf,
      thinking,
      open,
      connect,
    };
  },
});

type Setup = Parameters<typeof overHttp>;

/** Returns the dated API that preceded v1: each model has a path of its own, and sessions name it in the query. */
function dated(endpoint: string, version: string, options: Setup[0], tools: ChannelTools): ChannelParts {
  const base = new URL(`${endpoint}/openai`);
  const baseUrl = base.href;
  const { open } = overHttp({ ...options, baseUrl }, tools, { baseUrl, headers, speaks: {} });
  const connect = overSockets({ base, headers }, tools);
  const query = { 'api-version': version };
  return {
    speaks: {
      chat: ['chat-completions'],
      realtime: ['realtime'],
      embed: ['embeddings'],
      'generate-image': ['images'],
      transcribe: ['audio'],
      'translate-audio': ['audio'],
      speak: ['audio'],
    },
    traits: (model) => ({ ...traitsOf(model), formats: ['chat-completions'] }),
    thinking,
    open: (call, request) =>
      open(call, {
        ...request,
        path: `/deployments/${encodeURIComponent(request.model)}${request.path}`,
        query: { ...request.query, ...query },
      }),
    connect(call, request) {
      const { model: _model, ...rest } = request.query;
      return connect(call, { ...request, query: { ...rest, ...query, deployment: request.model } });
    },
  };
}

/** Returns the resource's endpoint without what stands behind the host. */
function endpointOf(baseUrl: string | undefined, resource: string | undefined): string {
  if (baseUrl !== undefined) return baseUrl.replace(/\/+$/, '').replace(/\/openai(\/v1)?$/, '');
  if (resource !== undefined) return `https://${resource}.openai.azure.com`;
  throw new Error('option "resource" is missing. Set the name of the resource, or its endpoint as baseUrl.');
}

/** Returns the tools with a token of an identity in place of a key. Throws where there is neither. */
export function signedIn(tools: ChannelTools, identity: EntraIdentity | undefined): ChannelTools {
  if (identity !== undefined)
    return tellingRefusals(
      withAuthorization(
        { ...tools, keys: [] },
        bearerTokens(entraTokens(identity, 'https://cognitiveservices.azure.com/.default'), tools.log),
      ),
      {
        who: 'Azure',
        advice:
          'Give it the role Cognitive Services OpenAI User (for other models of Foundry: Cognitive Services User) on the resource, and check that the resource is in its tenant.',
      },
    );
  if (tools.keys.length === 0)
    throw new Error(
      "option 'key' is empty. Set the variable that it is read from, or set identity: { kind: 'default' }.",
    );
  return tools;
}
