/** References to secrets in run-time entries: `{ env: 'NAME' }` and `{ file: '/path' }`. */
import { readFile } from 'node:fs/promises';
import { hideSecret } from '../../log.ts';
import { isObject, type JsonValue } from '../../model/json.ts';
import { env } from '../../settings/environment.ts';
import type { LoadedConfig } from '../config.ts';

/** Largest file that is read for a secret, in bytes. */
const maxBytes = 64 * 1024;

/** The reference that a value is; undefined for any other value. */
function referenceOf(value: JsonValue): { readonly from: 'env' | 'file'; readonly name: string } | undefined {
  if (!isObject(value)) return undefined;
  const [[from, name] = [], ...others] = Object.entries(value);
  if (others.length > 0 || typeof name !== 'string') return undefined;
  return from === 'env' || from === 'file' ? { from, name } : undefined;
}

/** Returns true for a value that stands for a secret elsewhere. */
export function isReference(value: JsonValue): boolean {
  return referenceOf(value) !== undefined;
}

/**
 * Returns a value with each reference replaced by the text that it stands for, or what is wrong with one. Only variables and files that the
 * config file lists are read, because administrators need not have access to the machine.
 */
export async function resolveReferences(
  value: JsonValue,
  { settings: { runtimeConfig } }: Pick<LoadedConfig, 'settings'>,
  where: string,
): Promise<{ readonly value: JsonValue } | { readonly problem: string }> {
  let problem: string | undefined;
  const resolve = async (one: JsonValue): Promise<JsonValue> => {
    const reference = referenceOf(one);
    if (reference === undefined) {
      if (Array.isArray(one)) return Promise.all((one as readonly JsonValue[]).map(resolve));
      if (!isObject(one)) return one;
      const members = Object.entries(one).map(
        async ([name, entry]) => [name, entry === undefined ? null : await resolve(entry)] as const,
      );
      return Object.fromEntries(await Promise.all(members));
    }
    const { from, name } = reference;
    const shown = name.slice(0, 200);
    const allowed = from === 'env' ? runtimeConfig.env : runtimeConfig.files;
    if (!allowed.includes(name)) {
      const list = from === 'env' ? 'runtimeConfig.env' : 'runtimeConfig.files';
      problem ??= `${where}: ${from} "${shown}" may not be used. Add it to "${list}" in gateway.config.ts.`;
      return '';
    }
    const text = from === 'env' ? env(name) : await textOf(name);
    if (text === undefined)
      problem ??= `${where}: ${from} "${shown}" is not set, cannot be read, or is too large.`;
    else hideSecret(text);
    return text ?? '';
  };
  const resolved = await resolve(value);
  return problem === undefined ? { value: resolved } : { problem };
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    const bytes = await readFile(path);
    return bytes.length > maxBytes ? undefined : bytes.toString('utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
