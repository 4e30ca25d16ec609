/** Marks options that hold secrets, and masks the secrets of values in the log. */
import type { z } from 'zod';
import { hideSecret } from '../log.ts';
import { hideUrl } from './hide-url.ts';
import { secretName } from './secret-name.ts';
import { walkSecrets, type SecretKind } from './secret-walk.ts';

export { secretKind } from './secret-walk.ts';

/**
 * Marks an option that holds a secret, such as a key or the text of a credentials file: its value is masked in the log, in errors, in the
 * admin API and on the command line. In an object, or a text that is a JSON object, the members with names like `private_key` are masked too.
 *
 * @example
 * options: z.object({ webhookToken: secret(z.string().min(16)) })
 */
export function secret<Schema extends z.ZodType>(schema: Schema): Schema {
  return schema.meta({ ...schema.meta(), secret: 'text' satisfies SecretKind });
}

/**
 * Marks an option that holds an address which may have a password (`https://user:password@host`) or a key in its query: both are masked,
 * the rest of the address is not.
 *
 * @example
 * options: z.object({ collector: secretUrl(z.url()) })
 */
export function secretUrl<Schema extends z.ZodType>(schema: Schema): Schema {
  return schema.meta({ ...schema.meta(), secret: 'url' satisfies SecretKind });
}

/** Masks, from now on, every secret of a value. The value need not fit the schema, so that errors about it can be shown. */
export function hideSecretsIn(schema: z.ZodType, value: unknown): void {
  walkSecrets(schema, value, (part, { kinds }) => {
    if (part === null) return;
    if (kinds.has('text')) hideText(part);
    if (kinds.has('url') && typeof part === 'string') hideUrl(part);
  });
}

function hideText(value: unknown): void {
  if (typeof value === 'object') return hideMembers(value);
  if (typeof value !== 'string') return;
  hideSecret(value);
  const text = value.trim();
  hideSecret(text);
  // The two halves of ACCESS|SECRET.
  for (const part of text.split('|')) hideSecret(part.trim());
  if (text.startsWith('{')) hideMembers(parsed(text));
}

/** Masks the members that have names of secrets, at any depth of a few levels. */
function hideMembers(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null || depth > 6) return;
  for (const [name, entry] of Object.entries(value)) {
    if (typeof entry === 'string' && secretName.test(name)) hideSecret(entry);
    else hideMembers(entry, depth + 1);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Masks the members of a table of headers or body members that have names of secrets, also behind a scheme such as `Bearer`. */
export function hideSecretMembers(members: Readonly<Record<string, unknown>> | undefined): void {
  if (typeof members !== 'object') return;
  for (const [name, value] of Object.entries(members)) {
    if (typeof value !== 'string' || !secretName.test(name)) continue;
    hideSecret(value);
    hideSecret(value.replace(/^\S+ +/, ''));
  }
}
