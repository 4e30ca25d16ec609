/** References to secrets in run-time entries: `{ env: 'NAME' }`, `{ file: '/path' }` and `{ from: 'vault:llm/openai#key' }`. */
import type { z } from 'zod';
import type { JsonValue } from '../../model/json.ts';
import { matchesName } from '../../sdk/name-patterns.ts';
import type { runtimeConfigSchema } from '../../settings/runtime-config.ts';
import { parseSecretReference, type SecretReference } from '../../settings/secret-reference.ts';
import { Secrets, startTime } from '../secrets/index.ts';
import { mapSecrets, referenceOf } from './secret-values.ts';

/** Settings that say what run-time entries may refer to, and who reads it. */
interface Readable {
  readonly settings: { readonly runtimeConfig: z.output<typeof runtimeConfigSchema> };
  /** Absent: variables and files alone are read. */
  readonly secrets?: Reader;
}

/** Reads the secrets that references stand for. */
type Reader = Pick<Secrets, 'get'>;

type EntryReference = NonNullable<ReturnType<typeof referenceOf>>;

/**
 * Returns a value with each reference to a secret replaced by the text that it stands for, or what is wrong with one. Only what the config file
 * lists is read, because administrators need not have access to the machine, nor to the secret manager. The schema tells where secrets stand:
 * elsewhere a reference is none, because values of other options may be shown to callers.
 */
export async function resolveReferences(
  value: JsonValue,
  schema: z.ZodType,
  { settings: { runtimeConfig }, secrets }: Readable,
  where: string,
): Promise<{ readonly value: JsonValue } | { readonly problem: string }> {
  const found = referencesOf(schema, value);
  if (found.size === 0) return { value };
  const reader = secrets ?? ownReader();
  const texts = new Map<string, string>();
  for (const [path, reference] of found) {
    const { form, name } = reference;
    const shown = `${form === 'from' ? 'the secret' : form} "${name.slice(0, 200)}"`;
    const parsed = parsedReference(reference);
    if (parsed === undefined)
      return {
        problem: `${where}: ${shown} is not a reference to a secret. Write one such as "vault:llm/first#key".`,
      };
    const list = listThatLacks(reference, parsed, runtimeConfig);
    if (list !== undefined)
      return { problem: `${where}: ${shown} is not allowed. Add it to "${list}" in gateway.config.ts.` };
    // oxlint-disable-next-line no-await-in-loop -- the first that is wrong ends it
    const got = await reader.get(parsed);
    if ('problem' in got)
      return {
        problem: `${where}: option "${path.replace(/^options\./, '')}": ${shown} cannot be used: ${got.problem}.`,
      };
    texts.set(path, got.text);
  }
  return {
    value: mapSecrets(
      schema,
      value,
      (text) => text,
      (_, path) => texts.get(path) ?? '',
    ),
  };
}

/** Returns a reader that reads each reference once, and gives up on all that are not read {@link startTime} after the first read began. */
export function sharedReader(secrets: Reader = ownReader()): Reader {
  let signal: AbortSignal | undefined;
  const reads = new Map<string, ReturnType<Reader['get']>>();
  return {
    get: (reference) => {
      signal ??= AbortSignal.timeout(startTime);
      const read = reads.get(reference.text) ?? secrets.get(reference, signal);
      reads.set(reference.text, read);
      return read;
    },
  };
}

/** Reads the references of a value that the config file lists. With a {@link sharedReader}, {@link resolveReferences} finds them read. */
export async function readReferences(
  value: JsonValue,
  schema: z.ZodType,
  { settings: { runtimeConfig }, secrets }: Required<Readable>,
): Promise<void> {
  const allowed = [...referencesOf(schema, value).values()].flatMap((reference) => {
    const parsed = parsedReference(reference);
    return parsed !== undefined && listThatLacks(reference, parsed, runtimeConfig) === undefined
      ? [parsed]
      : [];
  });
  await Promise.all(allowed.map((one) => secrets.get(one)));
}

/** Returns a reader of variables and files alone. */
function ownReader(): Reader {
  return new Secrets({ timeout: 1_000 });
}

/** Returns the references of a value by their paths. */
function referencesOf(schema: z.ZodType, value: JsonValue): ReadonlyMap<string, EntryReference> {
  const found = new Map<string, EntryReference>();
  mapSecrets(
    schema,
    value,
    (text) => text,
    (one, path) => {
      const reference = referenceOf(one);
      if (reference !== undefined) found.set(path, reference);
      return one;
    },
  );
  return found;
}

/** Returns the parsed reference. Names of variables and paths of files are not checked, because only listed ones are read. */
function parsedReference({ form, name }: EntryReference): SecretReference | undefined {
  return form === 'from' ? parseSecretReference(name) : { text: `${form}:${name}`, source: form, name };
}

/** Returns the setting that would have to list a reference; undefined where it does. */
function listThatLacks(
  { name: written, form }: EntryReference,
  { source, name }: SecretReference,
  { env, files, secrets }: Readable['settings']['runtimeConfig'],
): string | undefined {
  if (source === 'env') return env.includes(name) ? undefined : 'runtimeConfig.env';
  if (source === 'file') return files.includes(name) ? undefined : 'runtimeConfig.files';
  return form === 'from' && matchesName(secrets, written) ? undefined : 'runtimeConfig.secrets';
}
