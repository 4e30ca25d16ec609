import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { answerOf, codePointOffsets, labelOf, type Find, type Judge, type JudgeTools } from './judge.ts';

/** Options of `kind: 'lakera'`. */
export const lakeraOptions = {
  url: secretUrl(z.url()).default('https://api.lakera.ai'),
  apiKey: secret(z.string().min(1)),
  /** Project whose policy decides. Default: that of the API key. */
  project: z.string().min(1).optional(),
};
const schema = z.object(lakeraOptions);

const answered = z.object({
  flagged: z.boolean(),
  payload: z
    .array(
      z.object({
        start: z.int().min(0),
        end: z.int().min(0),
        text: z.string(),
        detector_type: z.string(),
        message_id: z.int().min(0).optional(),
      }),
    )
    .nullish(),
  breakdown: z.array(z.object({ detector_type: z.string(), detected: z.boolean() })).nullish(),
});

/**
 * Lakera Guard. `POST /v2/guard` with messages, answered by `flagged`, the detectors that decided (`breakdown`) and what they matched
 * (`payload`): https://docs.lakera.ai/docs/api/guard.
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
    const detected = (breakdown ?? []).filter((one) => one.detected).map((one) => one.detector_type);
    const finds = (payload ?? []).flatMap((one): Find[] => {
      const index = one.message_id ?? 0;
      const text = texts[index]?.text ?? '';
      const place = codePointOffsets(text);
      const [start, end] = [place(one.start), place(one.end)];
      // A place that does not hold what it names is not masked but looked for.
      const at = text.slice(start, end) === one.text ? start : text.indexOf(one.text);
      return at < 0 || one.text === ''
        ? []
        : [
            {
              text: index,
              start: at,
              end: at + one.text.length,
              label: labelOf(one.detector_type.split('/').at(-1) ?? ''),
            },
          ];
    });
    return { flagged, reasons: [...new Set(detected)], finds };
  };
}
