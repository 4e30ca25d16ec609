/** References to secrets in run-time entries: `{ env: 'NAME' }` and `{ file: '/path' }`. */
import { readFile } from 'node:fs/promises';
import { hideSecret } from '../../log.ts';
import type { z } from 'zod';
import type { JsonValue } from '../../model/json.ts';
import { env } from '../../settings/environment.ts';
import type { LoadedConfig } from '../config.ts';
import { mapSecrets, referenceOf } from './secret-values.ts';

/** Largest file that is read for a secret, in bytes. */
const maxBytes = 64 * 1024;

/**
 * Returns a value with each reference to a secret replaced by the text that it stands for, or what is wrong with one. Only variables and files
 * that the config file lists are read, because administrators need not have access to the machine. The schema tells where secrets stand:
 * elsewhere a reference is none, because values of other options may be shown to callers.
 */
export async function resolveReferences(
  value: JsonValue,
  schema: z.ZodType,
  { settings: { runtimeConfig } }: Pick<LoadedConfig, 'settings'>,
  where: string,
): Promise<{ readonly value: JsonValue } | { readonly problem: string }> {
  const texts = new Map<string, string>();
  const found: JsonValue[] = [];
  mapSecrets(
    schema,
    value,
    (text) => text,
    (reference) => {
      found.push(reference);
      return reference;
    },
  );
  for (const one of found) {
    const reference = referenceOf(one);
    if (reference === undefined) continue;
    const { from, name } = reference;
    const shown = name.slice(0, 200);
    const allowed = from === 'env' ? runtimeConfig.env : runtimeConfig.files;
    if (!allowed.includes(name)) {
      const list = from === 'env' ? 'runtimeConfig.env' : 'runtimeConfig.files';
      return {
        problem: `${where}: ${from} "${shown}" may not be used. Add it to "${list}" in gateway.config.ts.`,
      };
    }
    // oxlint-disable-next-line no-await-in-loop -- the first that is wrong ends it
    const text = from === 'env' ? env(name) : await textOf(name);
    if (text === undefined)
      return { problem: `${where}: ${from} "${shown}" is not set, cannot be read, or is too large.` };
    hideSecret(text);
    texts.set(JSON.stringify(one), text);
  }
  if (found.length === 0) return { value };
  return {
    value: mapSecrets(
      schema,
      value,
      (text) => text,
      (one) => texts.get(JSON.stringify(one)) ?? '',
    ),
  };
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    const bytes = await readFile(path);
    return bytes.length > maxBytes ? undefined : bytes.toString('utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
