/** Secrets in the values of run-time entries: how views show them, and how they are kept when a value is changed. */
import { z } from 'zod';
import { isObject, type JsonValue } from '../../model/json.ts';
import { secretKind } from '../../settings/secret.ts';

/** Secrets that are shorter show none of their characters. */
const shownFrom = 12;

/** Stands in a view in the place of a secret. A change that has it there keeps the secret. */
export interface HiddenSecret {
  readonly secret: true;
  /** The last 4 characters; empty for a short secret. */
  readonly last4: string;
  /** When it was set, in milliseconds since 1970. */
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

/** Names of members that may hold secrets in tables of headers and in objects that no schema describes. */
const secretName = /auth|cookie|credential|key|pass|secret|sig(?:nature)?$|token|^code$/i;

/** Returns the reference that a value has the form of; undefined for any other value. */
export function referenceOf(
  value: JsonValue,
): { readonly from: 'env' | 'file'; readonly name: string } | undefined {
  if (!isObject(value)) return undefined;
  const [[from, name] = [], ...others] = Object.entries(value);
  if (others.length > 0 || typeof name !== 'string') return undefined;
  return from === 'env' || from === 'file' ? { from, name } : undefined;
}

function isReference(value: JsonValue): boolean {
  return referenceOf(value) !== undefined;
}

type Visit = (text: string, path: string) => JsonValue;

/** How it is known that a secret stands somewhere: by the schema, or by the name of a member that no schema describes. */
type Secrecy = 'marked' | 'named' | undefined;

type VisitReference = (reference: JsonValue, path: string) => JsonValue;

/**
 * Returns a value with each secret replaced by what `visit` returns, and each reference to a secret by what `visitReference` returns. The schema
 * tells which texts are secrets; the value need not fit it. What looks like a reference and stands where no secret is expected stays as it is.
 */
export function mapSecrets(
  schema: z.ZodType,
  value: JsonValue,
  visit: Visit,
  visitReference: VisitReference = (reference) => reference,
): JsonValue {
  return walk([schema], value, '', undefined, { visit, visitReference });
}

/** Tables of a channel whose values may be references where the names of the members are those of secrets. */
const tables = /^options\.(?:headers|body)\.set\./;

/** `schemas` are all that may describe the value: a union has several. */
function walk(
  schemas: readonly z.ZodType[],
  value: JsonValue,
  path: string,
  around: Secrecy,
  visits: { readonly visit: Visit; readonly visitReference: VisitReference },
): JsonValue {
  const all = schemas.flatMap(openedOf);
  const kinds = new Set([...schemas, ...all].map(secretKind));
  const secrecy = kinds.has('text') ? 'marked' : around;
  if (isReference(value)) {
    const isSecret = secrecy === 'marked' || kinds.has('url') || (secrecy === 'named' && tables.test(path));
    return isSecret ? visits.visitReference(value, path) : value;
  }
  if (typeof value === 'string')
    return secrecy !== undefined || (kinds.has('url') && hasSecret(value))
      ? visits.visit(value, path)
      : value;
  const at = (name: string | number): string => (path === '' ? String(name) : `${path}.${name}`);
  if (Array.isArray(value))
    return (value as readonly JsonValue[]).map((entry, index) =>
      walk(all.flatMap(elementOf), entry, at(index), secrecy, visits),
    );
  if (!isObject(value)) return value;
  const members = Object.entries(value).flatMap(([name, entry]) => {
    if (entry === undefined) return [];
    const parts = all.flatMap((one) => memberOf(one, name));
    // What a schema describes as a table of anything is judged by the names of its members.
    const isNamed = !all.some((one) => one instanceof z.ZodObject) && secretName.test(name);
    return [
      [name, walk(parts, entry, at(name), secrecy ?? (isNamed ? 'named' : undefined), visits)] as const,
    ];
  });
  return Object.fromEntries(members);
}

/** True for an address with more than a host and a path. */
function hasSecret(address: string): boolean {
  if (!URL.canParse(address)) return true;
  const { username, password, search, hash } = new URL(address);
  return [username, password, search, hash].some((part) => part !== '');
}

/** The schema without what is around it; the schemas of a union. */
function openedOf(schema: z.ZodType): z.ZodType[] {
  if (secretKind(schema) !== undefined) return [schema];
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((one) => openedOf(one as z.ZodType));
  if (schema instanceof z.ZodPipe) return openedOf(schema.in as z.ZodType);
  if ('innerType' in schema.def) return openedOf(schema.def.innerType as z.ZodType);
  return [schema];
}

function elementOf(schema: z.ZodType): z.ZodType[] {
  return schema instanceof z.ZodArray ? [schema.element as z.ZodType] : [];
}

function memberOf(schema: z.ZodType, name: string): z.ZodType[] {
  if (schema instanceof z.ZodRecord) return [schema.valueType as z.ZodType];
  if (!(schema instanceof z.ZodObject) || !Object.hasOwn(schema.shape, name)) return [];
  return [schema.shape[name] as z.ZodType];
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
