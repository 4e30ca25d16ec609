import type { ModelTraits } from 'sluice';
import { traitsByModel } from '../_kit/http/http-channel.ts';
import { mistralBatches } from './batches.ts';
import { chat, chatFormat } from '../_kit/dialect/mistral-chat.ts';
import { transcribe, transcriptFormat } from './transcripts.ts';
import { openaiLike } from '../_kit/dialect/openai-like.ts';

/** Efforts of models that think when they are asked to. https://docs.mistral.ai/capabilities/reasoning/adjustable */
const adjustable = { reasoning: 'effort', efforts: ['none', 'high'], replaysReasoning: true } as const;

/** What its models take and do, by their names. */
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
  // These think whatever is said. https://docs.mistral.ai/capabilities/reasoning/native
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

/** What one of its models takes and does, also where a cloud serves it. */
export const mistralTraits = traitsByModel(mistralTable);

/** Mistral, in its own words. It answers 422 to members it does not know, and tells usage in every stream unasked. */
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
  // Those of embeddings, and of chats where `traits` say that they go as they are (`formats: ['chat-completions']`).
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
