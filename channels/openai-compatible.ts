/** Any place that speaks chat completions or Responses, at the address that the config gives. */
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
  /** For each operation the formats spoken, best first: `{ chat: ['chat-completions', 'responses'] }`. */
  speaks: z
    .partialRecord(z.enum(operations), z.array(z.enum(formats)).min(1))
    .default({ chat: ['chat-completions'], embed: ['embeddings'] }),
  /** What the provider keeps for keys, by the names of its paths: `['files', 'batches']`. */
  keeps: z.array(z.enum(collections)).optional(),
  /** What the requests of a batch cost, as a share of what they cost by themselves. Default: half. */
  batchShare: z.number().min(0).max(1).optional(),
  /** Fields of the body that the provider spells otherwise, or (null) refuses. */
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
 * What its models can do goes into `traits`; `models` left out, the provider is asked for them.
 *
 * @example
 * channels: [openaiCompatible({ name: 'acme', baseUrl: 'https://api.acme.ai/v1', key: env('ACME_API_KEY') })],
 */
export default compatible(kind);

export { openaiLike, type OpenaiLike } from './_kit/dialect/openai-like.ts';
