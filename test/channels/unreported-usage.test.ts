import type { JsonObject } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { expect, test } from 'vitest';
import { embed as ollama } from '../../channels/ollama/embed.ts';
import { vertexEmbed } from '../../channels/vertex/embed.ts';
import { embed as watsonx, rerank } from '../../channels/watsonx/codecs.ts';

const replies: readonly (readonly [name: string, codec: Pick<Codec, 'decodeWhole'>, body: JsonObject])[] = [
  ['ollama', ollama, { embeddings: [[1]] }],
  ['vertex', vertexEmbed, { predictions: [{ embeddings: { values: [1] } }] }],
  ['watsonx', watsonx, { results: [{ embedding: [1] }] }],
  ['watsonx rerank', rerank, { results: [{ index: 0, score: 1 }] }],
];

test.each(replies)('a reply of %s without usage is estimated, not free', (_name, codec, body) => {
  const types = codec.decodeWhole(body, {}).map(({ type }) => type);
  expect(types).toContain('result');
  expect(types).not.toContain('usage');
});
