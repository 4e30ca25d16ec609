/** Checks texts with a service of the operator's own (`kind: 'webhook'`), and signs requests to webhooks. */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { caller, secret, secretUrl } from 'sluice';
import { answerOf, labelOf, type Judge, type JudgeTools } from './judge.ts';

/** Options of `kind: 'webhook'`. */
export const webhookOptions = {
  url: secretUrl(z.url()),
  /** Signs each request: `x-sluice-signature: t=SECONDS,v1=HEX`, an HMAC with SHA-256 of `SECONDS.BODY`. */
  secret: secret(z.string().min(8)).optional(),
  /** Further headers. */
  headers: z.record(z.string(), secret(z.string())).default({}),
};
const schema = z.object(webhookOptions);

const answered = z.object({
  flagged: z.boolean(),
  reasons: z.array(z.string().max(200)).max(100).default([]),
  masks: z
    .array(
      z.object({
        text: z.int().min(0),
        start: z.int().min(0),
        end: z.int().min(0),
        label: z.string().max(40).default('VALUE'),
      }),
    )
    .max(10_000)
    .optional(),
});

/** Returns the value of `x-sluice-signature` for a body. `at`: Unix seconds. */
export function signatureOf(key: string, body: string, at: number): string {
  return `t=${at},v1=${createHmac('sha256', key).update(`${at}.${body}`).digest('hex')}`;
}

/** Returns a service of the operator's own, by the contract in docs/guides/guard.md. */
export function webhook(options: z.output<typeof schema>, { http, timeout }: JudgeTools): Judge {
  const { url, secret: key, headers } = options;
  return async ({ side, texts, call, signal }) => {
    const who = call.get(caller);
    const body = JSON.stringify({
      version: 1,
      side,
      call: call.id,
      operation: call.operation,
      format: call.format.name,
      model: call.model,
      key: who === undefined ? null : { id: who.id, name: who.name },
      texts: texts.map(({ role, text }) => ({ role, text })),
    });
    const signed =
      key === undefined
        ? {}
        : { 'x-sluice-signature': signatureOf(key, body, Math.floor(Date.now() / 1000)) };
    const answer = await http.ask({
      url,
      headers: { ...headers, ...signed, 'content-type': 'application/json' },
      body,
      timeout,
      signal,
    });
    const { flagged, reasons, masks } = answered.parse(answerOf('The webhook', answer));
    const finds = masks?.map((mask) => ({ ...mask, label: labelOf(mask.label) }));
    return { flagged, reasons, ...(finds === undefined ? {} : { finds }) };
  };
}
