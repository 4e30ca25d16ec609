/** Channel for any API in the messages format, at the base URL of the config. */
import { z } from 'zod';
import { defineChannel } from 'sluice';
import { compatible, requiredBaseUrl } from './_kit/http/compatible.ts';
import { apiKey, bearer, overHttp } from './_kit/http/http-channel.ts';

const options = z.object({
  /** Header that carries the key. */
  auth: z.enum(['x-api-key', 'bearer']).default('x-api-key'),
  /** True if the provider has `/messages/count_tokens`. */
  countsTokens: z.boolean().default(false),
  /** Objects that the provider stores for keys, by the names of its paths. */
  keeps: z.array(z.enum(['files', 'messages/batches'])).optional(),
  /** Price of requests in a batch, as a share of their normal price. Default: 0.5. */
  batchShare: z.number().min(0).max(1).optional(),
});

const kind = defineChannel({
  name: 'anthropic-compatible',
  needsKey: false,
  models: 'discover',
  options,
  setup({ auth, countsTokens, keeps, batchShare, ...rest }, tools) {
    return overHttp(rest, tools, {
      baseUrl: requiredBaseUrl(rest, 'https://api.example.com/anthropic/v1'),
      headers: (key) => (auth === 'bearer' ? bearer(key) : apiKey(key)),
      defaults: { 'anthropic-version': '2023-06-01' },
      speaks: { chat: ['messages'], ...(countsTokens ? { 'count-tokens': ['messages'] } : {}) },
      modelList: '/models?limit=1000',
      ...(keeps === undefined ? {} : { keeps: { messages: keeps } }),
      ...(batchShare === undefined ? {} : { batchShare }),
      // Without knowing the model a thinking budget and a plain history are what all of them take.
      traits: () => ({ reasoning: 'budget', jsonSchema: false, midSystem: false }),
    });
  },
});

/**
 * A provider that speaks the messages format, straight in the config: `name` is what logs, prices and the dashboard call it.
 *
 * @example
 * channels: [anthropicCompatible({ name: 'kimi', baseUrl: 'https://api.moonshot.ai/anthropic/v1', key: env('KIMI_KEY'), models: ['kimi-*'] })],
 */
export default compatible(kind);
