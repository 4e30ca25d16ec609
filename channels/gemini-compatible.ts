import { z } from 'zod';
import { defineChannel, type ChannelEntry, type ChannelOptions } from 'sluice';
import { bearer, overHttp } from './_http.ts';

const options = z.object({
  /** How the key is shown. */
  auth: z.enum(['x-goog-api-key', 'bearer']).default('x-goog-api-key'),
  /** What the provider keeps for keys, by the names of its paths. */
  keeps: z.array(z.enum(['files', 'cachedContents', 'batches'])).optional(),
});

const kind = defineChannel({
  name: 'gemini-compatible',
  needsKey: false,
  models: 'discover',
  options,
  setup({ auth, keeps, ...rest }, tools) {
    if (rest.baseUrl === undefined)
      throw new Error(
        'baseUrl is missing. Give the address up to and including its version: https://api.example.com/v1beta.',
      );
    return overHttp(rest, tools, {
      baseUrl: rest.baseUrl,
      headers: (key) =>
        auth === 'bearer' ? bearer(key) : key === undefined ? {} : { 'x-goog-api-key': key },
      speaks: {
        chat: ['generate-content'],
        'count-tokens': ['generate-content'],
        embed: ['generate-content'],
      },
      modelList: '/models?pageSize=1000',
      ...(keeps === undefined ? {} : { keeps: { 'generate-content': keeps } }),
    });
  },
});

/**
 * A provider that speaks generateContent, straight in the config: `name` is what logs, prices and the dashboard call it.
 *
 * @example
 * channels: [geminiCompatible({ name: 'relay', baseUrl: 'https://relay.example.com/v1beta', key: env('RELAY_KEY') })],
 */
export default Object.assign(
  ({
    name,
    ...rest
  }: { readonly name: string; readonly baseUrl: string } & ChannelOptions &
    z.input<typeof options>): ChannelEntry => kind({ id: name, ...rest }),
  { spec: kind.spec },
);
