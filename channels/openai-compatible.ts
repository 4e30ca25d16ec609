/** Channel for any API in the chat completions or Responses format, at the base URL of the config. */
import { z } from 'zod';
import { defineChannel } from 'sluice';
import { compatible, requiredBaseUrl } from './_kit/http/compatible.ts';
import { bearer, overHttp } from './_kit/http/http-channel.ts';

const operations = [
  'chat',
  'count-tokens',
  'compact',
  'embed',
  'rerank',
  'moderate',
  'transcribe',
  'translate-audio',
  'speak',
  'generate-image',
  'edit-image',
  'vary-image',
  'create-video',
  'get-video',
  'realtime',
] as const;

const formats = [
  'chat-completions',
  'responses',
  'messages',
  'generate-content',
  'text-completions',
  'embeddings',
  'rerank',
  'moderations',
  'audio',
  'images',
  'videos',
  'realtime',
] as const;

const collections = [
  'files',
  'uploads',
  'batches',
  'fine_tuning/jobs',
  'vector_stores',
  'containers',
  'evals',
] as const;

const options = z.object({
  /** Formats of the provider for each operation, best first: `{ chat: ['chat-completions', 'responses'] }`. */
  speaks: z
    .partialRecord(z.enum(operations), z.array(z.enum(formats)).min(1))
    .default({ chat: ['chat-completions'], embed: ['embeddings'] }),
  /** Objects that the provider stores for keys, by the names of its paths: `['files', 'batches']`. */
  keeps: z.array(z.enum(collections)).optional(),
  /** Price of requests in a batch, as a share of their normal price. Default: 0.5. */
  batchShare: z.number().min(0).max(1).optional(),
  /** Body fields that have another name at the provider, or that the provider refuses (null). */
  fields: z.record(z.string(), z.string().nullable()).optional(),
});

const kind = defineChannel({
  name: 'openai-compatible',
  needsKey: false,
  models: 'discover',
  options,
  setup({ speaks, keeps, batchShare, fields, ...rest }, tools) {
    return overHttp(rest, tools, {
      baseUrl: requiredBaseUrl(rest, 'https://api.example.com/v1'),
      headers: bearer,
      speaks,
      modelList: '/models',
      ...(keeps === undefined ? {} : { keeps: { 'chat-completions': keeps } }),
      ...(batchShare === undefined ? {} : { batchShare }),
      ...(fields === undefined ? {} : { fields }),
      traits: () => ({ refuses: ['customTools'] }),
    });
  },
});

/**
 * A provider that speaks the chat-completions dialect, straight in the config: `name` is what logs, prices and the dashboard call it.
 * Set the capabilities of its models in `traits`. Without `models` the channel serves the models that the provider lists.
 *
 * @example
 * channels: [openaiCompatible({ name: 'acme', baseUrl: 'https://api.acme.ai/v1', key: env('ACME_API_KEY') })],
 */
export default compatible(kind);

export { openaiLike, type OpenaiLike } from './_kit/dialect/openai-like.ts';
