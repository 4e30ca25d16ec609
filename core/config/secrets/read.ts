/** Reads one secret from a source, and takes the text out of it that a reference names. */
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { maskSecrets } from '../../log.ts';
import { parseObject } from '../../json/parse.ts';
import type { SecretSource } from '../../sdk/author/secrets.ts';
import type { SecretReference } from '../../settings/secret-reference.ts';

/** Result of a read of a source: what it has under a name. */
export type SecretValue = Awaited<ReturnType<SecretSource['read']>>;

/** Largest secret, in bytes. */
const maxBytes = 64 * 1024;

/** Pause before a read that failed is tried once more, in milliseconds. */
const pauseBeforeRetry = 300;

/** Longest reason in a sentence, in characters: a manager may answer with a page. */
const longestReason = 500;

interface ReadLimits {
  /** Longest time for one try, in milliseconds. */
  readonly timeout: number;
  readonly retries: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Reads a secret, and with `retries` once more where that fails. Rejects with an Error for the operator. */
export async function readSecret(
  source: SecretSource,
  { name, version }: Pick<SecretReference, 'name' | 'version'>,
  { timeout, signal, retries }: ReadLimits,
): Promise<SecretValue> {
  const read = (): Promise<SecretValue> =>
    within(timeout, signal, (own) =>
      source.read({ name, ...(version === undefined ? {} : { version }), signal: own }),
    );
  try {
    return await read();
  } catch (error) {
    if (!retries || signal?.aborted === true) throw error;
    await pause(pauseBeforeRetry);
    return read();
  }
}

/** Rejects after the timeout, even if the source ignores its abort signal. */
async function within<Value>(
  timeout: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const giveUp = (): void => late.reject(new Error(`there was no response within ${timeout} ms`));
  // A moment later, so that the sentence above is the one that is shown.
  const own = AbortSignal.timeout(timeout + 100);
  const timer = setTimeout(giveUp, timeout);
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    if (signal?.aborted === true)
      throw new Error('it was not read, because the time limit for all secrets was reached');
    return await Promise.race([
      work(signal === undefined ? own : AbortSignal.any([own, signal])),
      late.promise,
    ]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}

/** Returns the text that a reference names in what its source has. Throws an Error for the operator, without any of the value. */
export function textOfSecret({ field }: Pick<SecretReference, 'field'>, value: SecretValue): string {
  if (value === undefined)
    throw new Error('the secret does not exist: check its name and version, or create it');
  const text = (field === undefined ? wholeText(value) : fieldOf(value, field)).trim();
  if (text === '') throw new Error('the secret is empty');
  if (Buffer.byteLength(text) > maxBytes)
    throw new Error(`the secret is too large: at most ${maxBytes / 1024} KiB`);
  return text;
}

function wholeText(value: NonNullable<SecretValue>): string {
  if (typeof value === 'string') return value;
  const [only, ...others] = Object.values(value);
  if (others.length > 0 || only === undefined)
    throw new Error('the secret has several fields: name one of them with #FIELD');
  return textOf(only);
}

function fieldOf(value: NonNullable<SecretValue>, field: string): string {
  const members = typeof value === 'string' ? jsonObjectOf(value) : value;
  if (!Object.hasOwn(members, field)) throw new Error(`the secret has no field "${field}"`);
  return textOf(members[field]);
}

function jsonObjectOf(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseObject(text);
  if (parsed === undefined) throw new Error('the secret is not a JSON object and has no fields');
  return parsed;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new Error('the field of the secret is neither a text nor a number');
}

/** Returns why a read failed, as the end of a sentence. */
export function reasonOf(error: unknown): string {
  // The message of a SyntaxError quotes the beginning of the text, which may be the secret.
  if (error instanceof z.ZodError || error instanceof SyntaxError)
    return 'the secret manager sent an unexpected response';
  const text = error instanceof Error ? error.message : String(error);
  return maskSecrets(text).slice(0, longestReason).replaceAll(/\s+/g, ' ').replace(/\.$/, '');
}
