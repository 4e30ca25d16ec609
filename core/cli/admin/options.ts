/** Options of the command line that are made from the fields of an operation. */
import type { ParseArgsOptionsConfig } from 'node:util';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { UsageError } from '../command.ts';
import { budgetOf } from '../keys/options.ts';
import type { Field, FieldSchema } from './operations.ts';
import { momentOf } from './moments.ts';
import { ownerFlags, type ThingKind } from './things.ts';

/** Options that differ from the name of their field, as in `sluice key`. */
const shortNames: Readonly<Record<string, string>> = {
  requestsPerMinute: 'rpm',
  tokensPerMinute: 'tpm',
  budgets: 'budget',
  expiresAt: 'expires',
  keyId: 'key',
  organisation: 'organization',
  endUserBudget: 'end-user-budget',
};

/** One option. */
export interface Option {
  readonly flag: string;
  readonly field: Field;
  readonly kind: 'switch' | 'list' | 'value';
  /** Placeholder in the help. */
  readonly shows: string;
  /** Kind of thing whose id the field takes. The option also accepts a name. */
  readonly thing: ThingKind | undefined;
  /** True when `--clear-…` removes the value. */
  readonly mayClear: boolean;
  read(text: string): JsonValue;
}

/** Returns the option of a field. */
export function optionOf(field: Field): Option {
  const flag = flagOf(field.name);
  const { schema, mayClear } = withoutNull(field.schema);
  const type = schema['type'];
  const items = typeof schema['items'] === 'object' ? (schema['items'] as JsonObject) : undefined;
  const isBudgets = field.name === 'budgets' || field.name === 'endUserBudget';
  const isTime = timeFields.has(field.name);
  const isTeams = field.name === 'teams' && items?.['type'] === 'object';
  const shared = { flag, field, mayClear, thing: ownerFlags[field.name] };
  if (type === 'boolean') return { ...shared, kind: 'switch', shows: '', read: (text) => text === 'true' };
  if (type === 'array')
    return {
      ...shared,
      kind: 'list',
      shows: isBudgets ? 'AMOUNT/PERIOD' : isTeams ? 'TEAM[:lead]' : choices(items) || 'LIST',
      read: isBudgets
        ? (text) => ({ ...budgetOf(text) })
        : isTeams
          ? membershipOf
          : (text) => readAs(flag, items ?? {}, text),
    };
  return {
    ...shared,
    kind: 'value',
    shows: isBudgets ? 'AMOUNT/PERIOD' : isTime ? 'TIME' : choices(schema) || placeholder(type),
    read: isBudgets
      ? (text) => ({ ...budgetOf(text) })
      : isTime
        ? (text) => momentOf(flag, text, field.in === 'query')
        : (text) => readAs(flag, schema, text),
  };
}

/** Fields that are moments. */
const timeFields: ReadonlySet<string> = new Set(['since', 'until', 'expiresAt']);

function flagOf(name: string): string {
  return shortNames[name] ?? name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function withoutNull(schema: FieldSchema): { readonly schema: FieldSchema; readonly mayClear: boolean } {
  const variants = schema['anyOf'];
  if (!Array.isArray(variants)) return { schema, mayClear: false };
  const [first, ...others] = (variants as JsonObject[]).filter(({ type }) => type !== 'null');
  const mayClear = variants.some((one) => (one as JsonObject)['type'] === 'null');
  return { schema: others.length === 0 ? (first ?? {}) : {}, mayClear };
}

function choices(schema: FieldSchema | undefined): string {
  const names = schema?.['enum'];
  if (!Array.isArray(names)) return '';
  return names.length > 12 ? 'LIST' : names.map(String).join('|');
}

function placeholder(type: JsonValue | undefined): string {
  if (type === 'integer' || type === 'number') return 'N';
  return type === 'object' ? 'JSON' : 'TEXT';
}

function membershipOf(text: string): JsonValue {
  const [team = '', duty] = text.split(':');
  if (duty !== undefined && duty !== 'lead')
    throw new UsageError(`Invalid --teams "${text}". Use TEAM, or TEAM:lead for a lead of the team.`);
  return { team, lead: duty === 'lead' };
}

/** Parses a text by the type in its schema. The gateway validates the rest. */
function readAs(flag: string, { type }: FieldSchema, text: string): JsonValue {
  if (type === 'integer' || type === 'number') {
    if (!/^-?\d{1,15}(?:\.\d{1,9})?$/.test(text)) throw new UsageError(`--${flag} must be a number.`);
    return Number(text);
  }
  if (type !== 'object') return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw new UsageError(`--${flag} must be JSON, such as '{"factor":1.2}'.`);
  }
}

/** Returns the options in the form that `readArguments` accepts. */
export function configOf(options: readonly Option[]): ParseArgsOptionsConfig {
  const config: ParseArgsOptionsConfig = {};
  for (const { flag, kind, mayClear } of options) {
    config[flag] =
      kind === 'switch'
        ? { type: 'boolean' }
        : { type: 'string', ...(kind === 'list' && { multiple: true }) };
    if (kind === 'switch') config[`no-${flag}`] = { type: 'boolean' };
    if (mayClear) config[`clear-${flag}`] = { type: 'boolean' };
  }
  return config;
}

/** Values of options as on the command line. */
export type Given = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Reads the fields that options set. */
export function readFields(options: readonly Option[], given: Given): Record<string, JsonValue> {
  const fields: Record<string, JsonValue> = {};
  for (const { flag, field, kind, read, mayClear } of options) {
    const value = given[flag];
    if (kind === 'switch') {
      if (value === true || given[`no-${flag}`] === true) fields[field.name] = value === true;
    } else if (Array.isArray(value)) {
      const texts = value.flatMap((text) => String(text).split(','));
      fields[field.name] = texts
        .map((text) => text.trim())
        .filter((text) => text !== '')
        .map(read);
    } else if (typeof value === 'string') fields[field.name] = read(value);
    if (mayClear && given[`clear-${flag}`] === true) {
      if (Object.hasOwn(fields, field.name)) throw new UsageError(`Use either --${flag} or --clear-${flag}.`);
      fields[field.name] = null;
    }
  }
  return fields;
}
