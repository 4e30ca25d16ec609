/** Applies the option `body` of a channel: sets and removes members of JSON bodies and texts of forms. */
import type { UpstreamRequest } from '../sdk/channel.ts';
import type { FormPart } from '../model/form.ts';
import { parseObject } from '../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../model/json.ts';

/** Members of bodies, by dotted path, that an operator sets or removes. Numbers are indexes of a list. */
export interface BodyEdits {
  readonly set?: Readonly<Record<string, JsonValue>> | undefined;
  readonly remove?: readonly string[] | undefined;
}

/** Names that would reach the prototype of objects. */
const forbidden = new Set(['__proto__', 'constructor', 'prototype']);

/** Returns the problem of a path, as the end of a sentence that begins with the path; undefined for a valid one. */
export function pathProblem(path: string): string | undefined {
  const names = path.split('.');
  if (names.includes('')) return 'has an empty name between two dots';
  const bad = names.find((name) => forbidden.has(name));
  return bad === undefined ? undefined : `may not contain ${bad}`;
}

/**
 * Returns a function that applies the changes to POST requests: in JSON at any depth, in a form to its texts. Removes first. Returns a request
 * without a JSON object or form, and one in which nothing changes, as it is. Undefined where there are no changes.
 */
export function bodyEditor({ set = {}, remove = [] }: BodyEdits = {}):
  | ((request: UpstreamRequest) => UpstreamRequest)
  | undefined {
  const added = Object.entries(set).map(([path, value]) => ({ names: path.split('.'), value }));
  const gone = remove.map((path) => path.split('.'));
  if (added.length === 0 && gone.length === 0) return undefined;

  const inJson = (body: Buffer | string): string | undefined => {
    const parsed = parseObject(body.toString()) as MutableJson | undefined;
    if (parsed === undefined) return undefined;
    let changed = added.length > 0;
    for (const names of gone) changed = take(parsed, names) || changed;
    for (const { names, value } of added) put(parsed, names, value);
    return changed ? JSON.stringify(parsed) : undefined;
  };
  const inForm = (form: readonly FormPart[]): readonly FormPart[] => {
    const names = new Set([...Object.keys(set), ...remove]);
    return [
      ...form.filter((part) => 'file' in part || !names.has(part.name)),
      ...Object.entries(set)
        .filter(([name]) => !name.includes('.'))
        .map(([name, value]) => ({ name, value: typeof value === 'string' ? value : JSON.stringify(value) })),
    ];
  };

  return (request) => {
    const { body, method = 'POST' } = request;
    if (method !== 'POST') return request;
    const edited = typeof body === 'string' || Buffer.isBuffer(body) ? inJson(body) : inForm(body);
    return edited === undefined ? request : { ...request, body: edited };
  };
}

type MutableJson = { [name: string]: JsonValue } | JsonValue[];

/** Removes a member. Returns true when it existed. */
function take(root: MutableJson, names: readonly string[]): boolean {
  let parent: JsonValue | undefined = root as JsonValue;
  for (const name of names.slice(0, -1)) parent = memberOf(parent, name);
  const last = names.at(-1) ?? '';
  if (memberOf(parent, last) === undefined) return false;
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete (parent as { [name: string]: JsonValue })[last];
  return true;
}

/** Sets a member. Creates the objects and lists on its path. An index behind the end of a list is ignored, except for the next one. */
function put(root: MutableJson, names: readonly string[], value: JsonValue): void {
  let parent: MutableJson = root;
  for (const [depth, name] of names.entries()) {
    const isLast = depth === names.length - 1;
    if (Array.isArray(parent) && !(isIndex(name) && Number(name) <= parent.length)) return;
    const before = memberOf(parent as JsonValue, name);
    // Copied, because later requests use the same value, and later paths may change it.
    const next: JsonValue = isLast
      ? structuredClone(value)
      : isContainer(before)
        ? before
        : isIndex(names[depth + 1] ?? '')
          ? []
          : {};
    if (Array.isArray(parent)) parent[Number(name)] = next;
    else parent[name] = next;
    if (isLast || !isContainer(next)) return;
    parent = next as MutableJson;
  }
}

function memberOf(container: JsonValue | undefined, name: string): JsonValue | undefined {
  if (Array.isArray(container))
    return isIndex(name) ? (container as readonly JsonValue[])[Number(name)] : undefined;
  return isObject(container) && Object.hasOwn(container, name) ? container[name] : undefined;
}

function isContainer(value: JsonValue | undefined): value is JsonObject | readonly JsonValue[] {
  return Array.isArray(value) || isObject(value);
}

function isIndex(name: string): boolean {
  return /^(0|[1-9]\d{0,8})$/.test(name);
}
