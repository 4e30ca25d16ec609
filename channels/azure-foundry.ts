import { z } from 'zod';
import { defineChannel, type UpstreamRequest, type ChannelParts, type ChannelTools } from 'sluice';
import { azureDeployments, azureListing } from './_kit/http/azure-deployments.ts';
import { entraIdentity } from './_kit/identity/entra.ts';
import { overHttp } from './_kit/http/http-channel.ts';
import { openModel } from './_kit/dialect/open-models.ts';
import { isOpenai, onV1, openaiTraits } from './_kit/dialect/openai-models.ts';
import { claudeTraits } from './anthropic.ts';
import { signedIn } from './azure-openai.ts';

/**
 * Microsoft Foundry: models of many makers behind one resource, named by their deployments. Claude speaks messages, all others the v1 API.
 * https://learn.microsoft.com/en-us/azure/ai-foundry/foundry-models/concepts/endpoints
 */
export default defineChannel({
  name: 'azure-foundry',
  catalogue: ['azure_ai'],
  needsKey: false,
  options: z.object({
    /** Name of the resource, if `baseUrl` (`https://NAME.services.ai.azure.com`) is not set. */
    resource: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]*$/i, 'must be the name of a resource, without dots')
      .optional(),
    identity: entraIdentity
      .optional()
      .describe('Microsoft Entra identity that signs requests, in place of a key'),
    ...azureListing,
  }),
  setup({ resource, identity, resourceId, managementUrl, ...options }, tools: ChannelTools): ChannelParts {
    if (resource === undefined && options.baseUrl === undefined)
      throw new Error(
        'option "resource" is missing. Set the name of the resource, or its endpoint as baseUrl.',
      );
    const { open } = overHttp(options, signedIn(tools, identity), {
      baseUrl: `https://${resource ?? ''}.services.ai.azure.com`,
      // Claude knows its own header alone, and the v1 API only this one.
      headers: (key) => (key === undefined ? {} : { 'api-key': key, 'x-api-key': key }),
      speaks: {},
    });
    const listModels = azureDeployments(tools, { resourceId, managementUrl, identity });
    return {
      ...(listModels === undefined ? {} : { listModels }),
      speaks: {
        chat: ['chat-completions', 'responses', 'messages'],
        embed: ['embeddings'],
        'generate-image': ['images'],
        ocr: ['ocr'],
      },
      traits: (model) =>
        model.startsWith('claude-')
          ? {
              ...claudeTraits(model),
              formats: ['messages'],
              // LiteLLM 1.110.2, azure_ai/claude-fable-5 and claude-mythos-5-1: no `max` here.
              ...(/fable|mythos/.test(model) ? { efforts: ['low', 'medium', 'high', 'xhigh'] } : {}),
            }
          : isOpenai(model)
            ? onV1(openaiTraits(model))
            : {
                ...openModel(model, { reasoning: 'template' }),
                formats: ['chat-completions', 'responses'],
                // github:zed-industries/zed#52000: 400 for members that the service does not know.
                cacheMark: 'none',
                refuses: ['topK', 'customTools', 'promptCacheKey'],
                refusedMembers: ['prompt_cache_key'],
              },
      open: (call, request) => open(call, onFoundry(request)),
    };
  },
});

function onFoundry(request: UpstreamRequest): UpstreamRequest {
  // Mistral's models that read documents: LiteLLM 1.110.2, azure_ai (mistral-document-ai-2512)
  if (request.operation === 'ocr') return { ...request, path: '/providers/mistral/azure/ocr' };
  if (!request.path.startsWith('/messages')) return { ...request, path: `/openai/v1${request.path}` };
  return {
    ...request,
    path: `/anthropic/v1${request.path}`,
    headers: { 'anthropic-version': '2023-06-01', ...request.headers },
  };
}
