import { z } from 'zod';
import {
  defineChannel,
  type ModelTraits,
  type UpstreamRequest,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import { withAuthorization, bearerTokens, editMembers } from 'sluice/channel-kit';
import { googleCredentials, googleTokens } from './identity.ts';
import { overHttp } from '../_kit/http/http-channel.ts';
import { vertexLive } from '../_kit/live/addresses.ts';
import { chat as mistralChat, chatFormat as mistralFormat } from '../_kit/dialect/mistral-chat.ts';
import { openModel, thinksAlike } from '../_kit/dialect/open-models.ts';
import { tellingRefusals } from '../_kit/http/refusals.ts';
import { vertexEmbed } from './embed.ts';
import { openVideo, vertexVideos, videoFormat } from './videos.ts';
import { claudeTraits } from '../anthropic.ts';
import { geminiTraits } from '../gemini.ts';
import { mistralTraits } from '../mistral/index.ts';

/** The word that stands for the version header in a body: https://docs.claude.com/en/api/claude-on-vertex-ai */
const claudeVersion = 'vertex-2023-10-16';

/**
 * Google Vertex AI: Gemini, Imagen and Veo; Claude; Llama, Mistral and others of its model garden. Signed in with an access token of
 * Google's own identities, or in express mode with an API key.
 * https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest
 */
export default defineChannel({
  name: 'vertex',
  catalogue: [
    'vertex_ai-language-models',
    'vertex_ai-anthropic_models',
    'vertex_ai-embedding-models',
    'vertex_ai-llama_models',
    'vertex_ai-mistral_models',
    'vertex_ai-deepseek_models',
    'vertex_ai-minimax_models',
    'vertex_ai-moonshot_models',
    'vertex_ai-openai_models',
    'vertex_ai-qwen_models',
    'vertex_ai-zai_models',
    'vertex_ai-image-models',
    'vertex_ai-video-models',
    'vertex_ai',
  ],
  models: [
    'gemini-*',
    'claude-*',
    'imagen-*',
    'veo-*',
    'text-embedding-*',
    'text-multilingual-embedding-*',
    'mistral-*',
    'codestral-*',
    '*/*-maas',
  ],
  needsKey: false,
  options: z.object({
    /** Id of the project. Not needed in express mode. */
    project: z.string().min(1).optional(),
    /** Location of the models: a region, `us`, `eu` or `global`. */
    location: z
      .string()
      .regex(/^[a-z0-9-]+$/, 'must be a region such as us-central1, or global')
      .default('global'),
    /** Key of a service account, or configuration of a workload identity pool: the path of a file, its JSON text, or an object. */
    credentials: googleCredentials.optional(),
    apiVersion: z.enum(['v1', 'v1beta1']).default('v1').describe('version of the API'),
  }),
  setup({ project, location, credentials, apiVersion, ...options }, tools: ChannelTools): ChannelParts {
    const express = tools.keys.length > 0;
    if (!express && project === undefined)
      throw new Error(
        'option "project" is missing. Set the id of the project, or the key of an express-mode account.',
      );
    const root = express
      ? `https://aiplatform.googleapis.com/${apiVersion}`
      : `https://${hostOf(location)}/${apiVersion}/projects/${project ?? ''}/locations/${location}`;
    const signed = express
      ? tools
      : tellingRefusals(withAuthorization(tools, bearerTokens(googleTokens({ credentials }), tools.log)), {
          who: `Google Vertex AI in ${location}`,
          advice: `Give it the role Vertex AI User on the project ${project ?? ''}, see that the Vertex AI API is enabled there, and that the location has the model.`,
        });
    const { open } = overHttp(options, signed, {
      baseUrl: root,
      headers: (key) => (key === undefined ? {} : { 'x-goog-api-key': key }),
      speaks: {},
    });
    return {
      speaks: {
        chat: ['generate-content', 'messages', mistralFormat, 'chat-completions'],
        'count-tokens': ['generate-content', 'messages'],
        embed: ['vertex-embed'],
        'generate-image': ['generate-content'],
        'edit-image': ['generate-content'],
        speak: ['generate-content'],
        'create-video': [videoFormat],
        'get-video': [videoFormat],
        realtime: ['realtime'],
      },
      codecs: { chat: mistralChat, embed: vertexEmbed, ...vertexVideos },
      traits: traitsOf,
      ...vertexLive({ baseUrl: options.baseUrl ?? root, project, location, apiVersion }, signed),
      open: (call, request) => openVideo(call, open, onVertex(request)),
    };
  },
});

/** Returns the host of a region: https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations */
function hostOf(location: string): string {
  if (location === 'global') return 'aiplatform.googleapis.com';
  if (location === 'us' || location === 'eu') return `aiplatform.${location}.rep.googleapis.com`;
  return `${location}-aiplatform.googleapis.com`;
}

/** Returns the name of a model without its version: without `@20250929` in `claude-sonnet-4-5@20250929`. */
function nameOf(model: string): string {
  return model.split('@')[0] ?? model;
}

function traitsOf(model: string): ModelTraits {
  const name = nameOf(model);
  if (name.startsWith('claude-')) return { ...claudeTraits(name), formats: ['messages'], fetchesUrls: false };
  // The API of Mistral itself: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/mistral
  if (isMistral(name)) return { ...mistralTraits(name), formats: [mistralFormat] };
  if (name.includes('/'))
    return {
      formats: ['chat-completions'],
      ...maasThinking(name),
      outputLimitField: 'max_tokens',
      refuses: ['customTools'],
    };
  return {
    ...geminiTraits(name),
    formats: ['generate-content'],
    ...(/^gemini-[3-9]/.test(name) ? { streamsArguments: true } : {}),
  };
}

/**
 * Models of other makers take the arguments of their template. https://docs.cloud.google.com/vertex-ai/generative-ai/docs/maas/capabilities/thinking
 * Grok always reasons, and takes an effort from 4.3 on.
 */
function maasThinking(name: string): ModelTraits {
  if (/grok-4\.[3-9]/.test(name)) return { reasoning: 'effort', efforts: ['low', 'medium', 'high'] };
  if (/grok-(?!.*non-reasoning)/.test(name)) return thinksAlike;
  return (
    openModel(name, {
      reasoning: 'template',
      templateSwitch: /deepseek/.test(name) ? 'thinking' : 'enable_thinking',
    }) ?? { reasoning: 'none' }
  );
}

function isMistral(model: string): boolean {
  return /^(mistral|ministral|codestral|magistral)/.test(model);
}

/** Returns a request at the address that its model has here, and in the words that this address wants. */
function onVertex(request: UpstreamRequest): UpstreamRequest {
  const { path, model, stream } = request;
  const predict = stream ? 'streamRawPredict' : 'rawPredict';
  if (path === '/messages')
    return {
      ...request,
      path: `/publishers/anthropic/models/${encodeURIComponent(model)}:${predict}`,
      headers: withoutVersion(request.headers),
      body: editMembers(request.body, { model: undefined, anthropic_version: claudeVersion }),
    };
  if (path === '/messages/count_tokens')
    return {
      ...request,
      path: '/publishers/anthropic/models/count-tokens:rawPredict',
      headers: withoutVersion(request.headers),
      body: editMembers(request.body, { anthropic_version: claudeVersion }),
    };
  if (path === '/chat/completions')
    return {
      ...request,
      path: isMistral(model)
        ? `/publishers/mistralai/models/${encodeURIComponent(model)}:${predict}`
        : '/endpoints/openapi/chat/completions',
    };
  return { ...request, path: `/publishers/google${path}` };
}

/** Removes the header with the version, because the version is in the body here. */
function withoutVersion(headers: UpstreamRequest['headers']): UpstreamRequest['headers'] {
  const { 'anthropic-version': _, ...rest } = headers;
  return rest;
}
