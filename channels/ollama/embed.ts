/** Codec for Ollama's embeddings API, `/api/embed`. */
import type { GatewayEvent, JsonObject, JsonValue } from 'sluice';
import {
  estimateEmbed,
  defineCodec,
  requireText,
  readTokenUsage,
  readVectors,
  throwIfError,
  type Codec,
  type EmbedRequest,
} from 'sluice/channel-kit';
import { dropOfEmbed } from '../_kit/dialect/provider-words.ts';

/** Name of the format. */
export const embedFormat = 'ollama-embed';

/** https://docs.ollama.com/api/embed */
export const embed: Codec<EmbedRequest> = defineCodec<EmbedRequest>({
  format: embedFormat,
  operation: 'embed',
  path: '/api/embed',
  encodeRequest({ inputs, purpose, dimensions, title, user, extra }, { model, drop }) {
    const { keep_alive: keepAlive, truncate, options, ...others } = extra?.['embeddings'] ?? {};
    dropOfEmbed({ title, user, extra: { ...extra, embeddings: others } }, embedFormat, drop);
    if (purpose !== undefined) drop('taskType');
    return {
      path: '/api/embed',
      body: {
        model,
        input: inputs.map(requireText),
        ...(dimensions === undefined ? {} : { dimensions }),
        ...(truncate === undefined ? {} : { truncate }),
        ...(options === undefined ? {} : { options }),
        ...(keepAlive === undefined ? {} : { keep_alive: keepAlive }),
      },
    };
  },
  decodeWhole: decodeEmbeddings,
  estimate: estimateEmbed,
});

function decodeEmbeddings(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { embeddings, prompt_eval_count: count } = body;
  const list: readonly JsonValue[] = Array.isArray(embeddings) ? embeddings : [];
  const vectors = readVectors(list);
  return [
    { type: 'head', id: '', model: '' },
    { type: 'result', value: { vectors } },
    ...(typeof count === 'number'
      ? [{ type: 'usage', usage: readTokenUsage({ prompt_tokens: count }, embedFormat) } as const]
      : []),
  ];
}
