/** Secrets in the values of run-time entries: how views show them, and how they are kept when a value is changed. */
import type { z } from 'zod';
import { isObject, type JsonValue } from '../../model/json.ts';
import { walkSecrets, type ValueLocation } from '../../settings/secret-walk.ts';

/** Secrets that are shorter show none of their characters. */
const shownFrom = 12;

/** Stands in a view in the place of a secret. A change that has it there keeps the secret. */
export interface HiddenSecret {
  readonly secret: true;
  /** The last 4 characters; empty for a short secret. */
  readonly last4: string;
  /** Time at which it was set, in milliseconds since 1970. */
  readonly setAt?: number;
}

/** Returns what a view shows of a secret. */
export function hiddenSecret(
  text: string,
  setAt?: number,
): HiddenSecret & { readonly [name: string]: JsonValue } {
  const last4 = text.length < shownFrom ? '' : text.slice(-4);
  return { secret: true, last4, ...(setAt === undefined ? {} : { setAt }) };
}

/** A member by which a run-time entry names a secret: a variable, a file, or what a plugin offers. */
const referenceForms = ['env', 'file', 'from'] as const;

/** A reference as it stands in an entry. */
interface EntryReference {
  readonly form: (typeof referenceForms)[number];
  readonly name: string;
}

/** Returns the reference that a value has the form of; undefined for any other value. */
export function referenceOf(value: unknown): EntryReference | undefined {
  if (!isObject(value)) return undefined;
  const [[form, name] = [], ...others] = Object.entries(value);
  if (others.length > 0 || typeof name !== 'string') return undefined;
  const known = referenceForms.find((one) => one === form);
  return known === undefined ? undefined : { form: known, name };
}

type ReplaceText = (text: string, path: string) => JsonValue;

type ReplaceReference = (reference: JsonValue, path: string) => JsonValue;

/**
 * Returns a value with each secret replaced by what `visit` returns, and each reference to a secret by what `visitReference` returns. The schema
 * tells which texts are secrets; the value need not fit it. What looks like a reference and stands where no secret is expected stays as it is.
 */
export function mapSecrets(
  schema: z.ZodType,
  value: JsonValue,
  visit: ReplaceText,
  visitReference: ReplaceReference = (reference) => reference,
): JsonValue {
  return walkSecrets(schema, value, (part, location) => {
    if (referenceOf(part) !== undefined)
      return mayBeReference(location) ? visitReference(part as JsonValue, location.path) : part;
    if (typeof part !== 'string') return undefined;
    const isSecret = location.secrecy !== undefined || (location.kinds.has('url') && hasSecret(part));
    return isSecret ? visit(part, location.path) : undefined;
  }) as JsonValue;
}

/** Tables of a channel whose values may be references where the names of the members are those of secrets. */
const tables = /^options\.(?:headers|body)\.set\./;

/** Returns true when a secret is expected, so that a reference to one may stand there. */
export function mayBeReference({ secrecy, kinds, path }: ValueLocation): boolean {
  return secrecy === 'marked' || kinds.has('url') || (secrecy === 'named' && tables.test(path));
}

/** Returns true for an address with more than a host and a path. */
function hasSecret(address: string): boolean {
  if (!URL.canParse(address)) return true;
  const { username, password, search, hash } = new URL(address);
  return [username, password, search, hash].some((part) => part !== '');
}

/** Returns the secrets of a value by their paths. */
export function secretsOf(schema: z.ZodType, value: JsonValue): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  mapSecrets(schema, value, (text, path) => {
    found.set(path, text);
    return text;
  });
  return found;
}

/**
 * Puts the secrets of the value before in the places where a changed value has a {@link HiddenSecret}: the one at the same path, or in a list
 * the one with the same last characters. Throws what `refuse` makes of a path for which there is no such secret.
 */
export function keepSecrets(
  value: JsonValue,
  before: ReadonlyMap<string, string>,
  refuse: (path: string) => Error,
  onKept: (path: string) => void = () => {},
  path = '',
): JsonValue {
  const at = (name: string | number): string => (path === '' ? String(name) : `${path}.${name}`);
  if (Array.isArray(value))
    return (value as readonly JsonValue[]).map((entry, index) =>
      keepSecrets(entry, before, refuse, onKept, at(index)),
    );
  if (!isObject(value)) return value;
  if (value['secret'] === true && typeof value['last4'] === 'string') {
    const kept = keptSecret(value['last4'], before, path);
    if (kept === undefined) throw refuse(path);
    onKept(path);
    return kept;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, entry]) =>
      entry === undefined ? [] : [[name, keepSecrets(entry, before, refuse, onKept, at(name))] as const],
    ),
  );
}

function keptSecret(last4: string, before: ReadonlyMap<string, string>, path: string): string | undefined {
  const fits = (text: string | undefined): text is string =>
    text !== undefined && hiddenSecret(text).last4 === last4;
  const same = before.get(path);
  if (fits(same)) return same;
  const list = path.replace(/\.?\d+$/, '');
  if (list === path) return undefined;
  const others = [...before].filter(([other, text]) => other.replace(/\.?\d+$/, '') === list && fits(text));
  return others.length === 1 ? others[0]?.[1] : undefined;
}

/** Returns when each secret was set: one that stood in the value before keeps its time. */
export function datedSecrets(
  secrets: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, string>,
  times: Readonly<Record<string, number>>,
  now: number,
): Readonly<Record<string, number>> {
  const known = new Map([...before].map(([path, text]) => [text, times[path]]));
  return Object.fromEntries([...secrets].map(([path, text]) => [path, known.get(text) ?? now]));
}
