/** Channel for Google's Gemini API, and traits of Gemini models, wherever Google serves them. */
import type { ChannelTools } from 'sluice';
import { httpChannel, traitsByModel } from './_kit/http/http-channel.ts';
import { geminiLive } from './_kit/live/addresses.ts';

/** github:vercel/ai#8943, github:google-gemini/cookbook#1290: from 2.5 on "Penalty is not enabled for this model". */
const noPenalties = { refuses: ['frequencyPenalty', 'presencePenalty'] } as const;

/** Traits of a Gemini model by its name. */
export const geminiTraits = traitsByModel({
  '*': {
    reasoning: 'level',
    efforts: ['low', 'medium', 'high'],
    // Limits of models that the catalogue does not know.
    inputLimit: 1_048_576,
    outputLimit: 65_536,
  },
  // The catalogue has the later models without `minimal`.
  ...Object.fromEntries(
    ['gemini-3-*', 'gemini-3.1*', 'gemini-3.5*', 'gemini-3.6*'].map((model) => [
      model,
      { efforts: ['minimal', 'low', 'medium', 'high'] },
    ]),
  ),
  'gemini-4-hydrogen*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
  '*-pro*': { efforts: ['low', 'medium', 'high'] },
  'gemini-3-pro*': { efforts: ['low', 'high'] },
  // https://ai.google.dev/gemini-api/docs/thinking#set-budget: 2.5 Pro cannot stop thinking.
  'gemini-2.5-*': {
    ...noPenalties,
    reasoning: 'budget',
    efforts: ['none', 'minimal', 'low', 'medium', 'high'],
    thinkingBudget: { min: 1, max: 24_576 },
  },
  'gemini-2.5-flash-lite*': { thinkingBudget: { min: 512, max: 24_576 } },
  'gemini-2.5-pro*': {
    efforts: ['minimal', 'low', 'medium', 'high', 'xhigh'],
    thinkingBudget: { min: 128, max: 32_768 },
  },
  'gemini-3*': noPenalties,
  'gemini-3*image*': { images: { largest: '4K' } },
  'imagen-*': { images: { predicts: true } },
  'imagen-4.0-generate*': { images: { predicts: true, largest: '2K' } },
  'imagen-4.0-ultra*': { images: { predicts: true, largest: '2K' } },
  'gemini-2.0-*': { reasoning: 'none', outputLimit: 8192, fetchesUrls: false },
  'gemma-*': {
    reasoning: 'none',
    jsonSchema: false,
    fetchesUrls: false,
  },
  // https://ai.google.dev/gemma/docs/core/gemma_on_gemini_api
  'gemma-4-*': { reasoning: 'level', efforts: ['minimal', 'high'] },
  'learnlm-*': { reasoning: 'none', outputLimit: 8192, fetchesUrls: false },
});

const googleUrl = 'https://generativelanguage.googleapis.com/v1beta';

/** Models of 2.5 take a token budget for thinking, those of 3 and later a level. */
export default httpChannel({
  name: 'gemini',
  catalogue: ['gemini'],
  baseUrl: googleUrl,
  models: ['gemini-*', 'gemma-*', 'learnlm-*', 'imagen-*', 'veo-*', 'text-embedding-0*', 'embedding-*'],
  speaks: {
    chat: ['generate-content'],
    'count-tokens': ['generate-content'],
    embed: ['generate-content'],
    speak: ['generate-content'],
    'generate-image': ['generate-content'],
    'edit-image': ['generate-content'],
    'create-video': ['generate-content'],
    'get-video': ['generate-content'],
    realtime: ['realtime'],
  },
  keeps: { 'generate-content': ['files', 'cachedContents', 'fileSearchStores', 'batches'] },
  // https://ai.google.dev/gemini-api/docs/batch-api
  batchShare: 0.5,
  modelList: '/models?pageSize=1000',
  headers: (key) => (key === undefined ? {} : { 'x-goog-api-key': key }),
  beside: (parts, { baseUrl = googleUrl }, tools) => ({
    ...parts,
    ...geminiLive(baseUrl, tools as ChannelTools),
  }),
  // @google/genai 3.1.0, `Tool.mcpServers`: not on Vertex AI.
  traits: (model) => ({ ...geminiTraits(model), mcp: ['generate-content'] }),
});
