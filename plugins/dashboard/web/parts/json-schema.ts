/** JSON Schemas as the gateway describes options by them, and the values that forms hold. */

/** The parts of a JSON Schema that forms are made of. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  /** The option holds a secret. */
  readonly secret?: 'text' | 'url';
}

/** An object of a form. */
export type Members = Readonly<Record<string, unknown>>;

/** Returns true for an object that is no list. */
export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A secret as the gateway shows it. */
interface HiddenSecret {
  readonly secret: true;
  readonly last4: string;
  readonly setAt?: number;
}

/** Returns true for a secret that is stored and not shown. */
export function isHidden(value: unknown): value is HiddenSecret {
  return isMembers(value) && value['secret'] === true && typeof value['last4'] === 'string';
}

/** Kind of a form field. */
export type Shape =
  | 'secret'
  | 'text'
  | 'number'
  | 'flag'
  | 'choice'
  | 'lines'
  | 'list'
  | 'members'
  | 'table'
  | 'ways'
  | 'json';

/** Returns how a schema is drawn. */
export function shapeOf(schema: JsonSchema): Shape {
  if (schema.secret !== undefined) return 'secret';
  if (waysOf(schema).length > 0) return 'ways';
  if (schema.enum !== undefined || schema.const !== undefined) return 'choice';
  if (schema.type === 'string') return 'text';
  if (schema.type === 'number' || schema.type === 'integer') return 'number';
  if (schema.type === 'boolean') return 'flag';
  if (schema.type === 'array' && schema.items !== undefined)
    return shapeOf(schema.items) === 'text' ? 'lines' : 'list';
  if (schema.properties !== undefined) return 'members';
  return typeof schema.additionalProperties === 'object' ? 'table' : 'json';
}

/** Returns the schemas of which a value fits one. */
export function waysOf({ anyOf, oneOf }: JsonSchema): readonly JsonSchema[] {
  return anyOf ?? oneOf ?? [];
}

/** Returns a schema's name among others. */
export function titleOf(schema: JsonSchema): string {
  const { const: only, properties } = schema;
  if (only !== undefined) return String(only);
  const kind = Object.entries(properties ?? {}).find(([, { const: fixed }]) => fixed !== undefined);
  if (kind !== undefined) return String(kind[1].const);
  const words: Readonly<Record<Shape, string>> = {
    secret: 'Secret',
    text: 'Text',
    number: 'Number',
    flag: 'Yes or no',
    choice: 'One of a few',
    lines: 'List',
    list: 'List',
    members: 'Options',
    table: 'Table of names',
    ways: 'Other',
    json: 'JSON',
  };
  return words[shapeOf(schema)];
}

/** Returns the place of the way that a value has taken; 0 where it is not known. */
export function wayOf(ways: readonly JsonSchema[], value: unknown): number {
  return Math.max(
    0,
    ways.findIndex((way) => fits(way, value)),
  );
}

function fits(schema: JsonSchema, value: unknown): boolean {
  if (schema.const !== undefined) return value === schema.const;
  if (schema.enum !== undefined) return schema.enum.includes(value);
  if (schema.type === 'array') return Array.isArray(value);
  if (schema.type === 'object' || schema.properties !== undefined)
    return (
      isMembers(value) &&
      Object.entries(schema.properties ?? {}).every(
        ([name, { const: only }]) => only === undefined || value[name] === undefined || value[name] === only,
      )
    );
  return schema.type === 'integer' ? typeof value === 'number' : typeof value === schema.type;
}

/** Returns the value with which a way begins. */
export function startOf(schema: JsonSchema): unknown {
  if (schema.const !== undefined) return schema.const;
  const shape = shapeOf(schema);
  if (shape === 'lines' || shape === 'list') return [];
  if (shape === 'members')
    return Object.fromEntries(
      Object.entries(schema.properties ?? {}).flatMap(([name, { const: only }]) =>
        only !== undefined && schema.required?.includes(name) === true ? [[name, only]] : [],
      ),
    );
  return shape === 'table' ? {} : undefined;
}

/** Returns a value without empty texts, empty lines and options that are not given, as the gateway gets it. */
export function trimmed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(trimmed).filter((entry) => entry !== undefined);
  if (!isMembers(value)) return value === '' ? undefined : value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, entry]) => {
      const kept = trimmed(entry);
      return kept === undefined ? [] : [[name, kept]];
    }),
  );
}
