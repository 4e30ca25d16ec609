import { GatewayError, type JsonValue } from 'sluice';
import { isObject } from 'sluice/internal';
import { collectionOf, isId, kindOf, type ObjectFormat } from './collections.ts';

/** An object that a body refers to. */
export interface Reference {
  readonly kind: string;
  readonly id: string;
  /** The client's path of it. */
  readonly path: string;
  /** True for what a provider may have made by itself, so that nobody need own it. */
  readonly soft?: true;
}

/** What is looked for in bodies of one API. */
interface Words {
  /** Members whose text, or list of texts, names objects, and of which collection. */
  readonly members: Readonly<Record<string, string>>;
  /** The same in bodies by which objects are made, and in no call. */
  readonly ofObjects?: Readonly<Record<string, string>>;
  /**
   * Found in every text of a call with one of the members, unless letters are written as codes: a test holds it to them. At 28 KB 4 to 8
   * us where a search for each took 30 to 90: each way through an expression has few letters, so that most of a text is skipped.
   */
  readonly sign: RegExp;
  /** Members in which nothing refers to anything: what tools take and give, and what only tells of a source. */
  readonly passed: ReadonlySet<string>;
}

const passed = [
  'metadata',
  'parameters',
  'input_schema',
  'schema',
  'json_schema',
  'arguments',
  'annotations',
  'citations',
  'results',
  'outputs',
];

const words: Readonly<Record<ObjectFormat, Words>> = {
  'chat-completions': {
    members: {
      file_id: 'files',
      file_ids: 'files',
      input_file_id: 'files',
      vector_store_id: 'vector_stores',
      vector_store_ids: 'vector_stores',
      container: 'containers',
    },
    ofObjects: { training_file: 'files', validation_file: 'files' },
    sign: /[lr]e_id|ainer"/,
    passed: new Set(passed),
  },
  // A class of one letter: the machine reads what is a mere word letter by letter.
  messages: { members: { file_id: 'files' }, sign: /[f]ile_id/, passed: new Set(passed) },
  'generate-content': {
    members: {
      fileUri: 'files',
      file_uri: 'files',
      cachedContent: 'cachedContents',
      cached_content: 'cachedContents',
      fileSearchStoreNames: 'fileSearchStores',
      file_search_store_names: 'fileSearchStores',
    },
    ofObjects: { fileName: 'files', file_name: 'files' },
    sign: /(?:file_?[Uu]ri|ached_?[Cc]ontent|tore_?[Nn]ames)"/,
    passed: new Set([...passed, 'args', 'response', 'responseSchema', 'responseJsonSchema']),
  },
};

/** Formats whose bodies refer to objects of an API that is not the one of chat completions; undefined: to none. */
const apis: Readonly<Record<string, ObjectFormat | undefined>> = {
  messages: 'messages',
  invoke: 'messages',
  'generate-content': 'generate-content',
  converse: undefined,
};

/** The API to whose objects the bodies of a format refer; undefined where they refer to none. */
export function apiOf(format: string): ObjectFormat | undefined {
  return Object.hasOwn(apis, format) ? apis[format] : 'chat-completions';
}

/** Members that refer to something in calls of an API. */
export function membersOf(format: ObjectFormat): readonly string[] {
  return Object.keys(words[format].members);
}

/** So many bytes are looked through at once, and the longest sign is shorter than this. */
const stretch = 64 * 1024;
const overlap = 32;

/** False where the JSON of a call refers to nothing, found by a look at its letters. */
export function mayRefer(text: string | Buffer, format: ObjectFormat): boolean {
  const { sign } = words[format];
  if (typeof text === 'string') return sign.test(text) || text.includes('\\u00');
  for (let from = 0; from < text.length; from += stretch)
    if (sign.test(text.toString('latin1', from, from + stretch + overlap))) return true;
  return text.includes('\\u00');
}

/** More than any request refers to: each is looked up. */
const mostReferences = 1000;

/** What a body refers to, each once, wherever it stands. Throws 400 for what is no name of an object, and for more than a thousand. */
export function referencesIn(body: JsonValue, format: ObjectFormat): readonly Reference[] {
  const { members: ofCalls, ofObjects, passed: ignored } = words[format];
  const members: Readonly<Record<string, string>> = { ...ofCalls, ...ofObjects };
  const found = new Map<string, Reference>();
  const add = (name: string, value: string, path: string): void => {
    const reference = referenceOf(format, members[name] ?? 'files', value, path);
    if (reference === undefined) return;
    found.set(`${reference.kind} ${reference.id}`, reference);
    if (found.size > mostReferences)
      throw new GatewayError('invalid_value', `A request refers to at most ${mostReferences} objects.`);
  };
  const rest: { readonly value: JsonValue; readonly path: string }[] = [{ value: body, path: '' }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const { value, path } = next;
    if (Array.isArray(value))
      value.forEach((one: JsonValue, index) => rest.push({ value: one, path: `${path}[${index}]` }));
    if (!isObject(value)) continue;
    const { type } = value;
    const told = typeof type === 'string' ? type : '';
    // What code has made names files that its provider has made by itself.
    if (told.endsWith('code_execution_tool_result') || told === 'code_interpreter_call') continue;
    if (told === 'file_id' && 'file_id' in members && typeof value['id'] === 'string')
      add('file_id', value['id'], `${path}.id`);
    for (const name in value) {
      if (ignored.has(name) || (name === 'input' && told.endsWith('tool_use'))) continue;
      const member = value[name];
      const at = path === '' ? name : `${path}.${name}`;
      if (Object.hasOwn(members, name)) {
        const ids: readonly (JsonValue | undefined)[] = Array.isArray(member) ? member : [member];
        ids.forEach((id, index) => {
          if (typeof id === 'string') add(name, id, Array.isArray(member) ? `${at}[${index}]` : at);
        });
      }
      if (typeof member === 'object' && member !== null) rest.push({ value: member, path: at });
    }
  }
  return [...found.values()];
}

function referenceOf(format: ObjectFormat, name: string, value: string, path: string): Reference | undefined {
  const kind = kindOf(collectionOf(format, name));
  if (format !== 'generate-content') {
    if (name === 'containers') return isId(value) ? { kind, id: value, path, soft: true } : undefined;
    if (!isId(value)) throw unknownObject({ kind, id: value, path });
    return { kind, id: value, path };
  }
  // A cloud's own names, of what was made there and not here.
  if (value.startsWith('projects/')) return undefined;
  const id =
    name === 'files'
      ? fileIn(value, path)
      : value.startsWith(`${name}/`)
        ? value.slice(name.length + 1)
        : value;
  if (id === undefined) return undefined;
  if (!isId(id)) throw unknownObject({ kind, id: value, path });
  return { kind, id, path };
}

/**
 * The file that an address names; undefined for one that leads elsewhere. The provider's own addresses are kept to one spelling, as what is
 * not seen here to be somebody's file must not be one there.
 */
function fileIn(value: string, path: string): string | undefined {
  const name = /^(?:https?:\/\/[^/?#]+\/v1[a-z0-9]*\/)?files\/([\w-]+)$/i.exec(value)?.[1];
  if (name !== undefined) return name;
  const isPlain = /^(?:gs|https?):\/\//i.test(value);
  const host = isPlain && URL.canParse(value) ? new URL(value).hostname : value;
  if (!/generativelanguage/i.test(host) && (isPlain || !/^\W*files\b/i.test(value))) return undefined;
  throw new GatewayError('invalid_value', `${path} must be the uri of a file, as the provider gave it.`, {
    param: path,
  });
}

/** 404 for an object that is not there, or not this key's. */
export function unknownObject({ kind, id, path }: Pick<Reference, 'kind' | 'id' | 'path'>): GatewayError {
  const name = kind.slice(kind.lastIndexOf('/') + 1);
  return new GatewayError('not_found', `There is no ${id.slice(0, 200)} among the ${name} of this API key.`, {
    param: path,
  });
}
