import { documentText, type RerankRequest } from 'sluice/channel-kit';
import { wordsIn } from './embed.ts';
import type { DemoOperation } from './demo-operation.ts';

/** Documents score by the share of the query's words that they hold. */
export const rerank: DemoOperation<RerankRequest> = {
  speaks: ['rerank'],
  text: ({ query }) => query,
  answer({ query, documents, rankFields, topN = documents.length }) {
    const queryWords = new Set(wordsIn(query));
    const texts = documents.map((document) => documentText(document, rankFields));
    const scores = texts.map((text, index) => {
      const words = new Set(wordsIn(text));
      const found = [...queryWords].filter((word) => words.has(word)).length;
      return { index, score: Math.round((found / queryWords.size) * 10_000) / 10_000 };
    });
    const input = texts.reduce((sum, text) => sum + wordsIn(text).length + queryWords.size, 0);
    const best = scores.toSorted((one, other) => other.score - one.score || one.index - other.index);
    return [
      { type: 'result', value: { scores: best.slice(0, topN) } },
      { type: 'usage', usage: { input, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 } },
    ];
  },
};
