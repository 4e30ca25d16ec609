/** Checks texts with Lakera Guard (`kind: 'lakera'`). */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import {
  answerOf,
  codePointOffsets,
  labelOf,
  type Find,
  type Judge,
  type JudgedText,
  type JudgeTools,
} from './judge.ts';
import { locateValues, type FoundValue } from './locate-values.ts';

/** Options of `kind: 'lakera'`. */
export const lakeraOptions = {
  url: secretUrl(z.url()).default('https://api.lakera.ai'),
  apiKey: secret(z.string().min(1)),
  /** Project whose policy decides. Default: that of the API key. */
  project: z.string().min(1).optional(),
};
const schema = z.object(lakeraOptions);

const match = z.object({
  start: z.int().nullish(),
  end: z.int().nullish(),
  text: z.string().nullish(),
  detector_type: z.string().nullish(),
  message_id: z.int().nullish(),
});
const answered = z.object({
  flagged: z.boolean(),
  payload: z.array(match).nullish(),
  breakdown: z
    .array(z.object({ detector_type: z.string().nullish(), detected: z.boolean().nullish() }))
    .nullish(),
});

/**
 * Lakera Guard, `POST /v2/guard`. The request and its answer are those of https://docs.lakera.ai/api-reference/api/endpoints/guard/screen-content:
 * messages of users, assistants and systems; `flagged`, what matched (`payload`) and which detectors ran (`breakdown`). Members of the lists are
 * as LiteLLM reads them (`litellm/types/proxy/guardrails/guardrail_hooks/lakera_ai_v2.py`), of which each may be absent or null.
 */
export function lakera(options: z.output<typeof schema>, { http, timeout }: JudgeTools): Judge {
  const { url, apiKey, project } = options;
  return async ({ texts, signal }) => {
    const answer = await http.ask({
      url: `${url.replace(/\/$/, '')}/v2/guard`,
      headers: { authorization: `Bearer ${apiKey}` },
      json: {
        messages: texts.map(({ role, text }) => ({ role: role === 'tool' ? 'user' : role, content: text })),
        breakdown: true,
        payload: true,
        ...(project === undefined ? {} : { project_id: project }),
      },
      timeout,
      signal,
    });
    const { flagged, payload, breakdown } = answered.parse(answerOf('Lakera', answer));
    const detected = (breakdown ?? []).flatMap((one) =>
      one.detected === true && typeof one.detector_type === 'string' ? [one.detector_type] : [],
    );
    return { flagged, reasons: [...new Set(detected)], finds: findsOf(payload ?? [], texts) };
  };
}

/**
 * Returns the positions of matches. Lakera does not document whether offsets count code points or code units, nor whether `end` is exclusive.
 * If the text at a position differs from the reported text, searches for the reported text.
 */
function findsOf(payload: readonly z.output<typeof match>[], texts: readonly JudgedText[]): readonly Find[] {
  if (payload.length === 0) return [];
  const offsets = texts.map(({ text }) => codePointOffsets(text));
  const sought: FoundValue[] = [];
  const finds: Find[] = [];
  for (const { message_id: id, start, end, text, detector_type: type } of payload) {
    const name = type?.split('/').at(-1) ?? '';
    const index = id ?? (texts.length === 1 ? 0 : -1);
    const toUnits = offsets[index];
    const find = {
      text: index,
      start: toUnits?.(start ?? -1) ?? -1,
      end: toUnits?.(end ?? -1) ?? -1,
      label: labelOf(name),
    };
    const isThere = texts[index]?.text.slice(find.start, find.end) === text;
    if (typeof text !== 'string' || (isThere && text !== '')) finds.push(find);
    else sought.push({ value: text, name });
  }
  return [...finds, ...locateValues(sought, texts)];
}
