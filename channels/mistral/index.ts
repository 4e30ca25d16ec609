/** Channel for the Mistral API, and traits of Mistral's models, also where a cloud serves them. */
import type { ModelTraits } from 'sluice';
import { traitsByModel } from '../_kit/http/http-channel.ts';
import { mistralBatches } from './batches.ts';
import { chat, chatFormat } from '../_kit/dialect/mistral-chat.ts';
import { transcribe, transcriptFormat } from './transcripts.ts';
import { openaiLike } from '../_kit/dialect/openai-like.ts';

/** Efforts of models whose reasoning is optional. https://docs.mistral.ai/capabilities/reasoning/adjustable */
const adjustable = { reasoning: 'effort', efforts: ['none', 'high'], replaysReasoning: true } as const;

/** Traits by name pattern. */
const mistralTable: Readonly<Record<string, ModelTraits>> = {
  '*': {
    reasoning: 'none',
    outputLimitField: 'max_tokens',
    prefill: true,
    // https://docs.mistral.ai/api/#tag/chat
    ranges: { temperature: { min: 0, max: 1.5 } },
    // github:mistralai/client-ts#107: "Missing `additionalProperties: False` in object schema".
    schemaSubset: { closesObjects: true },
    refuses: ['topK', 'logprobs', 'topLogprobs', 'user', 'verbosity', 'modalities', 'cache'],
  },
  // Reasoning of these models cannot be disabled. https://docs.mistral.ai/capabilities/reasoning/native
  'magistral-*': { thinksByDefault: true, stopsThinking: false, replaysReasoning: true },
  'mistral-small-latest': adjustable,
  'mistral-small-2603': adjustable,
  'mistral-medium-latest': adjustable,
  'mistral-medium-2604': adjustable,
  'mistral-medium-3-5': adjustable,
  'mistral-medium-3.5': adjustable,
  // https://docs.mistral.ai/inference/conversations/reasoning
  'mistral-large-4*': adjustable,
};

/** Traits of a model by its name. */
export const mistralTraits = traitsByModel(mistralTable);

/** The API returns 422 for unknown members, and always reports usage in streams. */
export default openaiLike({
  name: 'mistral',
  catalogue: ['mistral'],
  baseUrl: 'https://api.mistral.ai/v1',
  models: [
    'mistral-*',
    'ministral-*',
    'magistral-*',
    'codestral-*',
    'devstral-*',
    'pixtral-*',
    'voxtral-*',
    'open-mi*',
  ],
  speaks: {
    chat: [chatFormat],
    embed: ['embeddings'],
    moderate: ['moderations'],
    // https://docs.mistral.ai/api/endpoint/ocr
    ocr: ['ocr'],
    transcribe: [transcriptFormat],
  },
  codecs: { chat, transcribe },
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  batches: mistralBatches,
  // Fields of embeddings, and of chats that `traits` send unchanged (`formats: ['chat-completions']`).
  fields: {
    dimensions: 'output_dimension',
    seed: 'random_seed',
    max_completion_tokens: 'max_tokens',
    stream_options: null,
    user: null,
  },
  thinking: adjustable,
  traits: mistralTable,
});
