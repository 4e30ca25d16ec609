/** Checks texts with a guardrail of Amazon Bedrock (`kind: 'bedrock'`). */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { answerOf, type Judge, type JudgeTools, type JudgedText } from './judge.ts';
import { locateValues } from './locate-values.ts';

/** Options of `kind: 'bedrock'`. */
export const bedrockOptions = {
  /** Id or ARN of the guardrail. */
  guardrail: z.string().min(1),
  version: z.string().min(1).default('DRAFT'),
  region: z.string().min(1),
  /** A Bedrock API key, which is a bearer token. */
  apiKey: secret(z.string().min(1)),
  /** Address in place of the region's. */
  url: secretUrl(z.url()).optional(),
};
const schema = z.object(bedrockOptions);

const action = z.object({ action: z.string().nullish() });
const assessment = z.object({
  topicPolicy: z.object({ topics: z.array(action.extend({ name: z.string() })) }).nullish(),
  contentPolicy: z.object({ filters: z.array(action.extend({ type: z.string() })) }).nullish(),
  wordPolicy: z
    .object({ customWords: z.array(action).nullish(), managedWordLists: z.array(action).nullish() })
    .nullish(),
  sensitiveInformationPolicy: z
    .object({
      piiEntities: z.array(action.extend({ type: z.string(), match: z.string() })).nullish(),
      regexes: z.array(action.extend({ name: z.string().nullish(), match: z.string().nullish() })).nullish(),
    })
    .nullish(),
});
const answered = z.object({ action: z.string(), assessments: z.array(assessment) });

/**
 * Returns a judge that applies a guardrail without a model: `POST /guardrail/ID/version/VERSION/apply`, as `ApplyGuardrailCommand` of
 * `@aws-sdk/client-bedrock-runtime` writes it. Values that it would anonymize are masked by their matches; everything that it blocks is flagged.
 */
export function bedrock(options: z.output<typeof schema>, { http, timeout }: JudgeTools): Judge {
  const { guardrail, version, region, apiKey, url } = options;
  const origin = (url ?? `https://bedrock-runtime.${region}.amazonaws.com`).replace(/\/$/, '');
  const path = `/guardrail/${encodeURIComponent(guardrail)}/version/${encodeURIComponent(version)}/apply`;
  return async ({ side, texts, signal }) => {
    const answer = await http.ask({
      url: origin + path,
      headers: { authorization: `Bearer ${apiKey}` },
      json: {
        source: side === 'request' ? 'INPUT' : 'OUTPUT',
        content: texts.map(({ text }) => ({ text: { text } })),
        outputScope: 'INTERVENTIONS',
      },
      timeout,
      signal,
    });
    const { action: taken, assessments } = answered.parse(answerOf('Bedrock', answer));
    if (taken === 'NONE') return { flagged: false, reasons: [] };
    return verdictOf(assessments, texts);
  };
}

function verdictOf(assessments: readonly z.output<typeof assessment>[], texts: readonly JudgedText[]) {
  const reasons = new Set<string>();
  const pii = assessments.flatMap(({ sensitiveInformationPolicy: policy }) => [
    ...(policy?.piiEntities ?? []).map(({ type, match, ...one }) => ({ ...one, name: type, value: match })),
    ...(policy?.regexes ?? []).map(({ name, match, ...one }) => ({
      ...one,
      name: name ?? 'regex',
      value: match ?? '',
    })),
  ]);
  const masked = pii.filter((one) => one.action === 'ANONYMIZED');
  for (const one of pii) if (one.action === 'BLOCKED') reasons.add(one.name);
  for (const { topicPolicy, contentPolicy, wordPolicy } of assessments) {
    for (const one of topicPolicy?.topics ?? [])
      if (one.action === 'BLOCKED') reasons.add(`topic:${one.name}`);
    for (const one of contentPolicy?.filters ?? []) if (one.action === 'BLOCKED') reasons.add(one.type);
    const words = [...(wordPolicy?.customWords ?? []), ...(wordPolicy?.managedWordLists ?? [])];
    if (words.some((one) => one.action === 'BLOCKED')) reasons.add('words');
  }
  // An intervention that names nothing of the above, such as missing grounding.
  if (reasons.size === 0 && masked.length === 0) reasons.add('intervened');
  return {
    flagged: reasons.size > 0 || masked.length > 0,
    blocked: reasons.size > 0,
    reasons: [...reasons, ...new Set(masked.map(({ name }) => name))],
    finds: locateValues(masked, texts),
  };
}
