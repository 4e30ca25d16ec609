/** Walks through a value together with its schema, and reports the positions of secrets, in a config and in run-time entries. */
import { z } from 'zod';
import { secretName } from './secret-name.ts';

/** Marks of an option with a secret in a schema: the whole text, or the password and the query of an address. */
export type SecretKind = 'text' | 'url';

/** Returns how a schema is marked; undefined for an option that holds no secret. */
export function secretKind(schema: z.ZodType): SecretKind | undefined {
  return schema.meta()?.['secret'] as SecretKind | undefined;
}

/** A place in a value. */
export interface ValueLocation {
  /** Names and indexes of members, with dots between. */
  readonly path: string;
  /** Marks of the schemas of this very place. */
  readonly kinds: ReadonlySet<SecretKind>;
  /**
   * How it is known that a secret stands here: a schema of this place or around it is marked as a text, or, where no schema describes the
   * members, the name of one sounds like a secret.
   */
  readonly secrecy: 'marked' | 'named' | undefined;
}

/** Returns what is to stand in the place of a value; undefined: the value stays, and what is in it is visited. */
export type VisitValue = (value: unknown, location: ValueLocation) => unknown;

/**
 * Visits a value and all that is in it, from the outside to the inside. The value need not fit the schema. Returns the value with what the
 * visits put in the place of its parts; lists and objects in which nothing was replaced stay the same ones.
 */
export function walkSecrets(schema: z.ZodType, value: unknown, visit: VisitValue): unknown {
  return walk([schema], value, { path: '', around: undefined, outer: [], visit });
}

/** Deepest value that is looked into. */
const deepest = 64;

interface Walk {
  readonly path: string;
  readonly around: ValueLocation['secrecy'];
  /** The values around it: a value that holds itself is looked into once. */
  readonly outer: readonly object[];
  readonly visit: VisitValue;
}

/** `schemas` are all that may describe the value: a union has several. */
function walk(schemas: readonly z.ZodType[], value: unknown, { path, around, outer, visit }: Walk): unknown {
  const all = schemas.flatMap(openedOf);
  const kinds = new Set(all.flatMap((schema) => secretKind(schema) ?? []));
  const secrecy = kinds.has('text') ? 'marked' : around;
  const replaced = visit(value, { path, kinds, secrecy });
  if (replaced !== undefined) return replaced;
  if (!isLookedInto(value) || outer.length >= deepest || outer.includes(value)) return value;
  const inner = [...outer, value];
  const at = (name: string | number): string => (path === '' ? String(name) : `${path}.${name}`);
  if (Array.isArray(value)) {
    const elements = all.flatMap(elementOf);
    const entries = (value as readonly unknown[]).map((entry, index) =>
      walk(elements, entry, { path: at(index), around: secrecy, outer: inner, visit }),
    );
    return entries.some((entry, index) => entry !== value[index]) ? entries : value;
  }
  const isDescribed = all.some((one) => one instanceof z.ZodObject);
  const members = Object.entries(value).map(([name, entry]) => {
    // In a table of any values the names of the members determine which ones are secret.
    const isNamed = !isDescribed && secretName.test(name);
    const inside = {
      path: at(name),
      around: secrecy ?? (isNamed ? 'named' : undefined),
      outer: inner,
      visit,
    } as const;
    return [
      name,
      walk(
        all.flatMap((one) => memberOf(one, name)),
        entry,
        inside,
      ),
    ] as const;
  });
  const before = value as Readonly<Record<string, unknown>>;
  return members.some(([name, entry]) => entry !== before[name]) ? Object.fromEntries(members) : value;
}

/** True for lists and for plain objects. A config may hold others, such as bytes, whose members are none of an option. */
function isLookedInto(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}

/** The schema, and all that is in it for the same value: what it is wrapped around, and what it is a union of. */
function openedOf(schema: z.ZodType): z.ZodType[] {
  if (schema instanceof z.ZodUnion)
    return [schema, ...schema.options.flatMap((one) => openedOf(one as z.ZodType))];
  if (schema instanceof z.ZodPipe) return [schema, ...openedOf(schema.in as z.ZodType)];
  if ('innerType' in schema.def) return [schema, ...openedOf(schema.def.innerType as z.ZodType)];
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
