/** Finds the provider objects that a request refers to, in JSON bodies, forms and queries. */
import { GatewayError, isObject, foldName, type JsonObject, type JsonValue } from 'sluice';
import { referenceIn } from '../stored-responses/items.ts';
import { collectionOf, isId, kindOf, type ObjectFormat } from './collections.ts';
import { referenceTables, type ReferenceRow } from './reference-table.ts';

/** An object that a request refers to. */
export interface Reference {
  readonly kind: string;
  readonly id: string;
  /** Path in the client's request. */
  readonly path: string;
  /** True for an object that the provider may have created during a call, so that it may have no owner. */
  readonly soft?: true;
}

/** APIs of the objects that the bodies of formats refer to; undefined: none. Formats that are not listed belong to `chat-completions`. */
const apis: Readonly<Record<string, ObjectFormat | undefined>> = {
  messages: 'messages',
  invoke: 'messages',
  'generate-content': 'generate-content',
  converse: undefined,
};

/** Returns the API to whose objects the bodies of a format refer; undefined where they refer to none. */
export function apiOf(format: string): ObjectFormat | undefined {
  return Object.hasOwn(apis, format) ? apis[format] : 'chat-completions';
}

/** Number of bytes that are searched at a time, and their overlap, which is longer than any match of `sign`. */
const stretch = 64 * 1024;
const overlap = 32;

/** Returns false when the text of a body surely refers to no object. */
export function mayRefer(text: string | Buffer, format: ObjectFormat): boolean {
  const { sign } = referenceTables[format];
  if (typeof text === 'string') return sign.test(text) || text.includes('\\u00');
  for (let from = 0; from < text.length; from += stretch)
    if (sign.test(text.toString('latin1', from, from + stretch + overlap))) return true;
  return text.includes('\\u00');
}

/** Rows by the member's name in lower case. */
type Rows = ReadonlyMap<string, readonly ReferenceRow[]>;

const rowsOf: Readonly<Record<ObjectFormat, Rows>> = {
  'chat-completions': byMember('chat-completions'),
  messages: byMember('messages'),
  'generate-content': byMember('generate-content'),
};

function byMember(format: ObjectFormat): Rows {
  return Map.groupBy(referenceTables[format].rows, ({ member }) => foldName(member));
}

/** Maximum number of references of a request, because each is looked up. */
const maxReferences = 1000;

/** Collects the references of one request, each object once. */
class Found {
  readonly #references = new Map<string, Reference>();

  add(reference: Reference | undefined): void {
    if (reference === undefined) return;
    const key = `${reference.kind} ${reference.id}`;
    // An object that is named twice must be owned where one of the references requires it.
    if (reference.soft === true && this.#references.has(key)) return;
    this.#references.set(key, reference);
    if (this.#references.size > maxReferences)
      throw new GatewayError('invalid_value', `A request refers to at most ${maxReferences} objects.`);
  }

  get all(): readonly Reference[] {
    return [...this.#references.values()];
  }
}

/** A value that is still to be searched. */
interface Step {
  readonly value: JsonValue;
  readonly path: string;
  /** True inside of results of code that the provider has run. */
  readonly isMade: boolean;
}

/**
 * Returns the objects that a body refers to at any depth, each once. Throws 404 for an invalid id, and 400 for an invalid URI of a file and for
 * more than 1000 references.
 */
export function referencesIn(body: JsonValue, format: ObjectFormat): readonly Reference[] {
  const found = new Found();
  const rest: Step[] = [{ value: body, path: '', isMade: false }];
  for (let step = rest.pop(); step !== undefined; step = rest.pop()) {
    const { value, path, isMade } = step;
    if (Array.isArray(value))
      value.forEach((one: JsonValue, index) => rest.push({ value: one, path: `${path}[${index}]`, isMade }));
    else if (isObject(value)) readObject(value, step, { format, found, rest });
  }
  return found.all;
}

interface Walk {
  readonly format: ObjectFormat;
  readonly found: Found;
  readonly rest: Step[];
}

function readObject(object: JsonObject, { path, isMade: isInside }: Step, walk: Walk): void {
  const type = typeof object['type'] === 'string' ? object['type'] : '';
  // Parts of the history stand in lists. Elsewhere such a type hides nothing.
  const isPart = path.endsWith(']');
  const isMade = isInside || (isPart && isMadeByCode(type));
  const rows = rowsOf[walk.format];
  const { ignored } = referenceTables[walk.format];
  for (const name in object) {
    if (ignored.has(name) || (isPart && name === 'input' && type.endsWith('tool_use'))) continue;
    const member = object[name];
    const at = path === '' ? name : `${path}.${name}`;
    for (const row of rows.get(memberName(name)) ?? [])
      if (row.type === undefined || row.type === type) readIds(member, row, { path: at, isMade }, walk);
    if (typeof member === 'object' && member !== null) walk.rest.push({ value: member, path: at, isMade });
  }
}

/** Returns true for results of code that a provider has run: they name files and containers that the code has made. */
function isMadeByCode(type: string): boolean {
  return type.endsWith('code_execution_tool_result') || type === 'code_interpreter_call';
}

function readIds(
  member: JsonValue | undefined,
  row: ReferenceRow,
  { path, isMade }: Omit<Step, 'value'>,
  { format, found }: Walk,
): void {
  const isSoft = isMade || row.madeInCalls === true;
  const read = (id: JsonValue | undefined, at: string): void => {
    if (typeof id === 'string') found.add(referenceOf(format, row.collection, id, at, isSoft));
  };
  if (Array.isArray(member)) member.forEach((id: JsonValue, index) => read(id, `${path}[${index}]`));
  else read(member, path);
}

/** Returns the name of a member in lower case; of a form field with brackets (`mask[file_id]`, `file_ids[0]`) the last one. */
function memberName(name: string): string {
  if (!name.includes('[')) return isLowerCase(name) ? name : foldName(name);
  const parts = name.split(/[[\]]+/).filter((part) => part !== '' && !/^\d+$/.test(part));
  return foldName(parts.at(-1) ?? name);
}

function isLowerCase(name: string): boolean {
  return !/[^a-z0-9_]/.test(name);
}

/** Maximum length of a text in a form that is read as JSON, in characters. */
const longestJson = 64 * 1024;

/** Returns the objects that a text field of a form refers to, also where its text is JSON. Throws as {@link referencesIn} does. */
export function referencesInField(name: string, text: string, format: ObjectFormat): readonly Reference[] {
  if (!/^\s*[[{]/.test(text) || !mayRefer(text, format)) return referencesIn({ [name]: text }, format);
  if (text.length > longestJson)
    throw new GatewayError(
      'invalid_value',
      `${name.slice(0, 100)} refers to objects in more than ${longestJson} characters of JSON.`,
      { param: name.slice(0, 100) },
    );
  return referencesIn({ [name]: jsonOr(text) }, format);
}

function jsonOr(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

/** Returns the objects that a form or a query refers to. */
export function referencesInFields(
  fields: Iterable<readonly [string, JsonValue | undefined]>,
  format: ObjectFormat,
): readonly Reference[] {
  const found = new Found();
  for (const [name, value] of fields)
    for (const text of Array.isArray(value) ? value : [value])
      if (typeof text === 'string') for (const one of referencesInField(name, text, format)) found.add(one);
  return found.all;
}

/** Returns true for a request of the Responses API that refers to earlier turns at the provider. */
export function refersToTurns(body: JsonObject): boolean {
  const { prompt_cache_options: options, input } = body;
  return (
    isGiven(body['previous_response_id']) ||
    isGiven(body['conversation']) ||
    (isObject(options) && isGiven(options['comparison_response_id'])) ||
    (Array.isArray(input) && input.some((item) => isObject(item) && referenceIn(item) !== undefined))
  );
}

function isGiven(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}

/** Returns true for kinds of objects that providers also create during calls, so that an id that no key owns may be used. */
export function isMadeInCalls(kind: string): boolean {
  return Object.entries(referenceTables).some(([format, { rows }]) =>
    rows.some(({ madeInCalls, collection: name }) => madeInCalls && kindOf({ format, name }) === kind),
  );
}

function referenceOf(
  format: ObjectFormat,
  name: string,
  value: string,
  path: string,
  isSoft: boolean,
): Reference | undefined {
  const kind = kindOf(collectionOf(format, name));
  const id = format === 'generate-content' ? generateContentId(name, value, path) : value;
  if (id === undefined) return undefined;
  // An invalid id cannot belong to any key.
  if (!isId(id) && isSoft) return undefined;
  if (!isId(id)) throw unknownObject({ kind, id: value, path });
  return { kind, id, path, ...(isSoft ? { soft: true } : {}) };
}

function generateContentId(name: string, value: string, path: string): string | undefined {
  // Resource names of the cloud, for objects that were not created through the gateway.
  if (value.startsWith('projects/')) return undefined;
  if (name === 'files') return fileIn(value, path);
  return value.startsWith(`${name}/`) ? value.slice(name.length + 1) : value;
}

/**
 * Returns the file that a URI names; undefined for a URI that leads elsewhere. Other spellings of the provider's own URIs are refused, because the
 * gateway must recognise every file that the provider would read.
 */
function fileIn(value: string, path: string): string | undefined {
  const name = /^(?:https?:\/\/[^/?#]+\/v1[a-z0-9]*\/)?files\/([\w-]+)$/i.exec(value)?.[1];
  if (name !== undefined) return name;
  const isPlain = /^(?:gs|https?):\/\//i.test(value);
  const host = isPlain && URL.canParse(value) ? new URL(value).hostname : value;
  if (!/generativelanguage/i.test(host) && (isPlain || !/^\W*files\b/i.test(value))) return undefined;
  throw new GatewayError('invalid_value', `${path} must be the uri of a file, as returned by the provider.`, {
    param: path,
  });
}

/** Returns the 404 error for an object that does not exist or belongs to another key. */
export function unknownObject({ kind, id, path }: Pick<Reference, 'kind' | 'id' | 'path'>): GatewayError {
  const name = kind.slice(kind.lastIndexOf('/') + 1);
  return new GatewayError('not_found', `There is no ${id.slice(0, 200)} among the ${name} of this API key.`, {
    param: path,
  });
}
