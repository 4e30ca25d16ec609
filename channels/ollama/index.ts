import { z } from 'zod';
import { defineChannel, type ModelTraits, type UpstreamRequest, type ChannelParts } from 'sluice';
import { editMembers } from 'sluice/channel-kit';
import { bearer, overHttp, traitsByModel } from '../_kit/http/http-channel.ts';
import { chat, chatFormat } from './chat.ts';
import { embed, embedFormat } from './embed.ts';

/** https://docs.ollama.com/api/openai-compatibility lists the members that it reads. */
const common: ModelTraits = {
  reasoning: 'none',
  outputLimitField: 'max_tokens',
  fetchesUrls: false,
  refuses: ['choices', 'user', 'parallelTools', 'serviceTier', 'metadata', 'promptCacheKey', 'verbosity'],
};

const thinkers: Readonly<Record<string, ModelTraits>> = {
  'qwen3*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'] },
  'deepseek-r1*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'] },
  'gpt-oss*': { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
};

const traits = traitsByModel({ '*': common, ...thinkers });

/** Settings that the native API of Ollama does not have either. */
const nativeTraits = traitsByModel({
  '*': {
    ...common,
    replaysReasoning: true,
    refuses: [...(common.refuses ?? []), 'customTools', 'logprobs', 'topLogprobs', 'modalities', 'cache'],
  },
  ...thinkers,
});

/**
 * Ollama on this machine, or at `baseUrl`. Models without reasoning return 400 to a request for it. `native` uses the native API, which
 * supports more than its chat completions: options such as `num_ctx`, `keep_alive`, a schema for every model, and reasoning in requests.
 */
export default defineChannel({
  name: 'ollama',
  needsKey: false,
  discover: true,
  prices: { '*': { input: 0, output: 0 } },
  models: [
    'llama*',
    'qwen*',
    'gemma*',
    'gpt-oss*',
    'phi*',
    'mistral*',
    'deepseek-r1*',
    'granite*',
    'smollm*',
    'nomic-embed-*',
    'mxbai-embed-*',
    'bge-*',
    'all-minilm*',
  ],
  options: z.object({
    native: z
      .boolean()
      .default(false)
      .describe('true: uses the native API of Ollama in place of chat completions'),
    keepAlive: z
      .union([z.string().min(1), z.number()])
      .optional()
      .describe(
        'time for which models stay loaded if a request does not set it: `10m`, or a number of seconds. Only with `native`',
      ),
  }),
  setup({ native, keepAlive, ...options }, tools): ChannelParts {
    if (!native)
      return overHttp(options, tools, {
        baseUrl: 'http://localhost:11434/v1',
        headers: bearer,
        modelList: '/models',
        speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
        traits: (model) => {
          const known = traits(model);
          return { ...known, refuses: [...(known.refuses ?? []), 'customTools'] };
        },
      });
    const baseUrl = (options.baseUrl ?? 'http://localhost:11434').replace(/\/+$/, '').replace(/\/v1$/, '');
    const parts = overHttp({ ...options, baseUrl }, tools, {
      baseUrl,
      headers: bearer,
      modelList: '/api/tags',
      speaks: { chat: [chatFormat], embed: [embedFormat] },
      traits: nativeTraits,
    });
    return {
      ...parts,
      codecs: { chat, embed },
      open: (call, request) => parts.open(call, kept(request, keepAlive)),
    };
  },
});

/** Returns the request with how long the model stays loaded, where it does not say. */
function kept(request: UpstreamRequest, keepAlive: string | number | undefined): UpstreamRequest {
  const { body } = request;
  if (keepAlive === undefined || (typeof body === 'string' && body.includes('"keep_alive"'))) return request;
  return { ...request, body: editMembers(body, { keep_alive: keepAlive }) };
}
