/** A key as it is stored, and its secret. */
import { randomInt } from 'node:crypto';
import { z } from 'zod';
import type { ApiKey } from '../../sdk/api-key.ts';
import { apiKeyFields, budgetShape, endUserBudgetField } from './fields.ts';

type Editable = Omit<
  ApiKey,
  'id' | 'hash' | 'prefix' | 'suffix' | 'createdAt' | 'lastUsedAt' | 'owners' | 'pricing'
>;

/** The fields to change. `undefined` takes away what may be absent. */
export type ApiKeyChanges = { readonly [Field in keyof Editable]?: Editable[Field] | undefined };

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Characters that a secret may have. */
export const SECRET = { shortest: 16, longest: 256 };

const whole = z.int('must be a whole number').min(1, 'must be at least 1').exactOptional();
const names = (what: string) =>
  z
    .array(z.string().min(1, 'must not contain an empty text'))
    .min(1, `must not be empty: leave it out to allow every ${what}`)
    .exactOptional();

/** A key as it is stored. */
export const recordSchema: z.ZodType<ApiKey> = z.object({
  id: z.string(),
  name: z.string().trim().min(1, 'must not be empty').max(200, 'must be at most 200 characters'),
  note: z.string().exactOptional(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  prefix: z.string(),
  suffix: z.string(),
  models: names('model'),
  budgets: z
    .array(
      z.object({
        ...budgetShape.shape,
        amount: z.int('must be a whole number').min(0, 'must not be negative'),
      }),
    )
    .exactOptional(),
  endUserBudget: endUserBudgetField.exactOptional(),
  tags: apiKeyFields.tags.exactOptional(),
  callTags: z.boolean().exactOptional(),
  requestsPerMinute: whole,
  tokensPerMinute: whole,
  concurrency: whole,
  addresses: names('address'),
  expiresAt: z.int('must be milliseconds since 1970').exactOptional(),
  team: z.string().exactOptional(),
  member: z.string().exactOptional(),
  enabled: z.boolean(),
  createdAt: z.int(),
});

/** Letters and digits, each as likely as any other. */
export function randomBase62(length: number): string {
  return Array.from({ length }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('');
}

/** Returns the visible part of a secret. Of a short secret, which an operator may have chosen, it reveals less than half. */
export function recognition(value: string): Pick<ApiKey, 'prefix' | 'suffix'> {
  return {
    prefix: value.slice(0, Math.min(7, Math.floor(value.length / 4))),
    suffix: value.slice(-Math.min(4, Math.floor(value.length / 8))),
  };
}

/** A secret that the operator has chosen. Throws an Error for one that cannot be. */
export function checkSecret(value: string): string {
  const { shortest, longest } = SECRET;
  if (value.length >= shortest && value.length <= longest && /^[!-~]+$/.test(value)) return value;
  throw new Error(
    `The value of a key must be ${shortest} to ${longest} visible ASCII characters without spaces.`,
  );
}

/** Throws an Error that names the field. */
export function checkRecord(record: unknown): ApiKey {
  const result = recordSchema.safeParse(record);
  if (result.success) return result.data;
  throw new Error(`The API key cannot be saved: ${sentenceOf(result.error)}.`);
}

/** Returns the errors of a record, by field. */
export function sentenceOf(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => [path.join('.') || 'record', message].join(': ')).join('; ');
}

/** Without the fields that are undefined. */
export function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Returns a key id or name from a request in a form that messages may show, because a secret entered by mistake must not end up in a log. */
export function shown(which: string): string {
  return which.length > 32 && which.startsWith('sk-') ? `${which.slice(0, 7)}…` : which;
}
