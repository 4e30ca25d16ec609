import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { embedCodec, splitEmbed, type Codec, type EmbedRequest } from 'sluice/channel-kit';

/**
 * Embeddings, whose numbers come as signed bytes in base64: at most 512 texts, each with up to 32,000 tokens.
 * https://docs.perplexity.ai/api-reference/embeddings-post; @perplexity-ai/perplexity_ai 0.38.5, `EmbeddingsRequestInput`
 */
export const embed: Codec<EmbedRequest> = {
  ...embedCodec,
  format: 'perplexity-embeddings',
  encodeRequest(request, target) {
    const { body, ...encoded } = embedCodec.encodeRequest(request, target);
    const { encoding_format: _, user, task, input_type: type, ...rest } = body;
    if (user !== undefined) target.drop('user');
    if (task !== undefined || type !== undefined || request.purpose !== undefined) target.drop('taskType');
    return { ...encoded, body: { ...rest, encoding_format: 'base64_int8' } };
  },
  decodeWhole: (body, traits) => embedCodec.decodeWhole(withNumbers(body), traits),
  split: (request) => splitEmbed(request, 512),
};

function withNumbers(body: JsonObject): JsonObject {
  const { data } = body;
  if (!Array.isArray(data)) return body;
  const entries: JsonValue[] = data.map((entry: JsonValue) => {
    const vector = isObject(entry) ? entry['embedding'] : undefined;
    return isObject(entry) && typeof vector === 'string'
      ? { ...entry, embedding: [...new Int8Array(Buffer.from(vector, 'base64'))] }
      : entry;
  });
  return { ...body, data: entries };
}
