/** Mantle, Bedrock's endpoint for the formats of OpenAI and Anthropic: address, paths and model traits. */
import type { ModelTraits, UpstreamRequest } from 'sluice';
import { claudeIn } from './claude.ts';
import { gptOss, openModel } from '../_kit/dialect/open-models.ts';
import { openaiTraits } from '../_kit/dialect/openai-models.ts';
import { claudeTraits } from '../anthropic.ts';

/** Returns the address in a region. https://docs.aws.amazon.com/bedrock/latest/userguide/bedrock-mantle.html */
export function mantleEndpoint(region: string): string {
  return `https://bedrock-mantle.${region}.api.aws`;
}

/** Name of the service that requests to Mantle are signed for: @anthropic-ai/bedrock-sdk 1.1.3, mantle-client; openai 6, internal/bedrock. */
export const mantleService = 'bedrock-mantle';

/** Models that Mantle serves under `/openai/v1`; a model is refused under the other prefix. LiteLLM 1.110.2, `use_openai_responses_path`. */
const underOpenai = /^(?:openai\.gpt-(?!oss)|google\.gemma-4|xai\.)/;

/** Returns the path of a request at Mantle, and the headers that it needs. */
export function mantleRequest({
  format,
  model,
  path,
  headers,
}: UpstreamRequest): Pick<UpstreamRequest, 'path' | 'headers'> {
  if (format === 'messages')
    return {
      path: `/anthropic/v1${path}`,
      headers: { 'anthropic-version': '2023-06-01', ...headers },
    };
  return { path: `${underOpenai.test(model) ? '/openai' : ''}/v1${path}`, headers };
}

/** Features that Mantle does not support: LiteLLM 1.110.2, llms/bedrock_mantle. */
const refuses = ['topK', 'choices', 'customTools'];

/** Efforts of Grok: langchain-aws 1.9.1, data/_profiles.py; LiteLLM 1.110.2 on what it refuses. */
export const grok: ModelTraits = {
  reasoning: 'effort',
  efforts: ['low', 'medium', 'high', 'xhigh'],
  thinksByDefault: true,
  outputLimitField: 'max_completion_tokens',
  refuses: ['topK', 'customTools', 'stop', 'frequencyPenalty', 'presencePenalty', 'choices'],
};

/** Traits of a model at Mantle, by its name. */
export function mantleTraits(model: string): ModelTraits {
  const claude = claudeIn(model) ?? /^anthropic\.(claude-.*)$/.exec(model)?.[1];
  if (claude !== undefined)
    return {
      ...claudeTraits(claude),
      formats: ['messages'],
      fetchesUrls: false,
      // https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-structured-outputs.html
      jsonSchema: false,
    };
  return {
    fetchesUrls: false,
    refuses,
    outputLimitField: 'max_completion_tokens',
    cacheMark: 'none',
    ...familyTraits(model),
  };
}

const chat = 'chat-completions';

function familyTraits(model: string): ModelTraits {
  if (/^openai\.gpt-(?!oss)/.test(model)) {
    // A variant of GPT-5.6, in Responses alone: LiteLLM 1.110.2, `supported_endpoints` of bedrock_mantle/openai.gpt-daybreak-blue-5.6-sol.
    const [, variant] = /^openai\.gpt-(daybreak-\w+-)/.exec(model) ?? [];
    const known = openaiTraits(model.slice('openai.'.length).replace(variant ?? '', ''));
    const formats = variant === undefined ? ['responses', chat] : ['responses'];
    return { ...known, formats, refuses: [...(known.refuses ?? []), 'choices'] };
  }
  if (model.startsWith('openai.gpt-oss'))
    return { ...gptOss, formats: model.includes('safeguard') ? [chat] : [chat, 'responses'] };
  if (model.startsWith('xai.grok-4.3'))
    return { ...grok, efforts: ['none', 'low', 'medium', 'high'], formats: [chat, 'responses'] };
  if (model.startsWith('xai.')) return { ...grok, formats: [chat, 'responses'] };
  if (model.startsWith('google.gemma-4'))
    return { reasoning: 'effort', efforts: ['none', 'high'], formats: [chat, 'responses'] };
  return { reasoning: 'none', ...openModel(model, { reasoning: 'none' }), formats: [chat] };
}
