/** Channel for any API in the generateContent format, at the base URL of the config. */
import { z } from 'zod';
import { defineChannel } from 'sluice';
import { compatible, requiredBaseUrl } from './_kit/http/compatible.ts';
import { bearer, overHttp } from './_kit/http/http-channel.ts';

const options = z.object({
  /** Header that carries the key. */
  auth: z.enum(['x-goog-api-key', 'bearer']).default('x-goog-api-key'),
  /** Objects that the provider stores for keys, by the names of its paths. */
  keeps: z.array(z.enum(['files', 'cachedContents', 'fileSearchStores', 'batches'])).optional(),
  /** Price of requests in a batch, as a share of their normal price. Default: 0.5. */
  batchShare: z.number().min(0).max(1).optional(),
});

const kind = defineChannel({
  name: 'gemini-compatible',
  needsKey: false,
  models: 'discover',
  options,
  setup({ auth, keeps, batchShare, ...rest }, tools) {
    return overHttp(rest, tools, {
      baseUrl: requiredBaseUrl(rest, 'https://api.example.com/v1beta'),
      headers: (key) =>
        auth === 'bearer' ? bearer(key) : key === undefined ? {} : { 'x-goog-api-key': key },
      speaks: {
        chat: ['generate-content'],
        'count-tokens': ['generate-content'],
        embed: ['generate-content'],
      },
      modelList: '/models?pageSize=1000',
      ...(keeps === undefined ? {} : { keeps: { 'generate-content': keeps } }),
      ...(batchShare === undefined ? {} : { batchShare }),
    });
  },
});

/**
 * A provider that speaks generateContent, straight in the config: `name` is what logs, prices and the dashboard call it.
 *
 * @example
 * channels: [geminiCompatible({ name: 'relay', baseUrl: 'https://relay.example.com/v1beta', key: env('RELAY_KEY') })],
 */
export default compatible(kind);
