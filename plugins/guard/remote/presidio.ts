/** Finds personal data with the analyzer of Microsoft Presidio (`kind: 'presidio'`). */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import {
  answerOf,
  codePointOffsets,
  forEach,
  labelOf,
  type Find,
  type Judge,
  type JudgeTools,
} from './judge.ts';

/** Options of `kind: 'presidio'`. */
export const presidioOptions = {
  /** Address of the analyzer: `http://presidio-analyzer:3000`. */
  url: secretUrl(z.url()),
  language: z.string().min(2).default('en'),
  /** Entities to look for. Default: all that the analyzer knows. */
  entities: z.array(z.string().min(1)).optional(),
  /** Lowest score that counts, 0 to 1. */
  threshold: z.number().min(0).max(1).default(0.5),
  /** Sent as `authorization: Bearer`. */
  apiKey: secret(z.string().min(1)).optional(),
};
const schema = z.object(presidioOptions);

const findings = z.array(
  z.object({ entity_type: z.string(), start: z.int().min(0), end: z.int().min(0), score: z.number() }),
);

/**
 * Microsoft Presidio's analyzer. `POST /analyze` with an `AnalyzeRequest`, answered by a list of `RecognizerResult`
 * (https://github.com/microsoft/presidio, docs/api-docs/api-docs.yml). Offsets are those of Python's strings: they count code points.
 */
export function presidio(options: z.output<typeof schema>, { http, timeout }: JudgeTools): Judge {
  const { url, language, entities, threshold, apiKey } = options;
  return async ({ texts, signal }) => {
    const found = await forEach(texts, async ({ text }, index): Promise<readonly Find[]> => {
      const answer = await http.ask({
        url: `${url.replace(/\/$/, '')}/analyze`,
        headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
        json: {
          text,
          language,
          score_threshold: threshold,
          ...(entities === undefined ? {} : { entities }),
        },
        timeout,
        signal,
      });
      const toUnits = codePointOffsets(text);
      return findings
        .parse(answerOf('Presidio', answer))
        .filter(({ score }) => score >= threshold)
        .map(({ entity_type: type, start, end }) => ({
          text: index,
          start: toUnits(start),
          end: toUnits(end),
          label: labelOf(type),
        }));
    });
    const finds = found.flat();
    const reasons = [...new Set(finds.map(({ label }) => label))];
    return { flagged: finds.length > 0, reasons, finds };
  };
}
