import { httpChannel, traitsByModel } from './_http.ts';

/** Google's Gemini API. 2.5 models take a token budget for thinking, 3 and later a level. */
export default httpChannel({
  name: 'gemini',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  models: ['gemini-*', 'gemma-*', 'learnlm-*'],
  speaks: { chat: ['generate-content'], 'count-tokens': ['generate-content'] },
  headers: (key) => (key === undefined ? {} : { 'x-goog-api-key': key }),
  traits: traitsByModel({
    '*': {
      reasoning: 'level',
      efforts: ['minimal', 'low', 'medium', 'high'],
      inputLimit: 1_048_576,
      outputLimit: 65_536,
    },
    '*-pro*': { efforts: ['low', 'medium', 'high'] },
    'gemini-3-pro*': { efforts: ['low', 'high'] },
    'gemini-2.5-*': { reasoning: 'budget', efforts: ['none', 'minimal', 'low', 'medium', 'high'] },
    // The one that cannot stop thinking; its budget goes higher than that of the others.
    'gemini-2.5-pro*': { efforts: ['minimal', 'low', 'medium', 'high', 'xhigh'] },
    'gemini-2.0-*': { reasoning: 'none', outputLimit: 8192, fetchesUrls: false },
    'gemma-*': { reasoning: 'none', outputLimit: 8192, inputLimit: 131_072, jsonSchema: false },
    'learnlm-*': { reasoning: 'none', outputLimit: 8192 },
  }),
});
