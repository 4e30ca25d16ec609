/** Table of the kinds of objects that providers keep, by API: paths, operations, and the cost of creating and changing one. */
import type { JsonObject, JsonValue } from 'sluice';

/** The formats whose APIs have objects that providers keep. */
export type ObjectFormat = 'chat-completions' | 'messages' | 'generate-content';

/** Kind of object of an API. */
export interface Collection {
  readonly format: ObjectFormat;
  /** Name in `keeps` of channels, and path at the provider. */
  readonly name: string;
  /** Noun for one object, for messages. */
  readonly noun: string;
  /** Paths at the gateway. */
  readonly paths: readonly string[];
  /** Way of creating an object: from JSON, from a form with a file, or by code outside of `endpoints.ts`. */
  readonly creates: 'json' | 'form' | 'otherwise';
  /**
   * Cost of a new object. `free`: the provider charges nothing for it. `reserved`: the code that creates it reserves its cost. `unknown`: nothing
   * tells the cost in advance, so that keys with budgets may not create it.
   */
  readonly cost: 'free' | 'reserved' | 'unknown';
  /**
   * Paths below an object to which a POST costs nothing, for example `cancel`. Keys with budgets may not send a POST to any other path below
   * an object, because it may start work or storage whose cost nothing tells in advance.
   */
  readonly freePosts: RegExp;
  /** Members of a change that cost nothing. Keys with budgets may change no other member. Default: every member is free or reserved. */
  readonly freeChanges?: ReadonlySet<string>;
  /** False for objects that can be neither listed nor retrieved. */
  readonly shown: boolean;
  /** HTTP method that changes an object. Absent where none can be changed. */
  readonly changes?: 'POST' | 'PATCH';
  readonly deletes: boolean;
  /** True where an object has paths below its own, for its owner only. */
  readonly below: boolean;
  /** Returns true for a description that may have changed at the provider, so that lists request it again. */
  readonly isMoving?: (seen: JsonObject) => boolean;
  /** The member of a list that holds the objects. */
  readonly listed: string;
  /** Maximum number of objects of a page. Smaller if each object needs a request to the provider. */
  readonly longestPage: number;
}

/** Returns the kind under which the objects of a collection are stored. */
export function kindOf({ format, name }: { readonly format: string; readonly name: string }): string {
  return `${format}/${name}`;
}

/** Matches no path: every POST below an object may cost something. */
const none = /^(?!)/;
const cancel = /^cancel$/;

/** Members that only describe an object. */
const description: ReadonlySet<string> = new Set(['name', 'metadata']);

const whole = {
  cost: 'unknown',
  freePosts: none,
  shown: true,
  deletes: true,
  below: false,
  creates: 'json',
  listed: 'data',
  longestPage: 100,
} as const;

function ofChat(name: string, noun: string, rest: Partial<Collection> = {}): Collection {
  return { ...whole, format: 'chat-completions', name, noun, paths: [`/v1/${name}`], ...rest };
}

function ofMessages(name: string, noun: string, rest: Partial<Collection> = {}): Collection {
  return { ...whole, format: 'messages', name, noun, paths: [`/v1/${name}`], ...rest };
}

/** Versions of the API: the current SDK of this format uses `/v1`, others `/v1beta`. */
function ofGenerateContent(name: string, noun: string, rest: Partial<Collection> = {}): Collection {
  const paths = [`/v1beta/${name}`, `/v1/${name}`];
  return { ...whole, format: 'generate-content', name, noun, paths, listed: name, ...rest };
}

/** Returns true when a time, in Unix seconds or as a date, has passed. */
function hasEnded(time: JsonValue | undefined): boolean {
  const at =
    typeof time === 'number' ? time * 1000 : typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return at <= Date.now();
}

const over: ReadonlySet<unknown> = new Set(['completed', 'failed', 'expired', 'cancelled', 'succeeded']);

/**
 * Everything that is kept, by API. OpenAI charges for vector storage by size and day, and for containers by session
 * (https://platform.openai.com/docs/pricing). Gemini charges for the indexing of files in file search stores, not for the stores
 * (https://ai.google.dev/gemini-api/docs/file-search).
 */
export const collections: readonly Collection[] = [
  ofChat('files', 'file', {
    creates: 'form',
    cost: 'free',
    below: true,
    isMoving: ({ expires_at: time }) => hasEnded(time),
    longestPage: 1000,
  }),
  ofChat('uploads', 'upload', {
    cost: 'free',
    freePosts: /^(?:parts|complete|cancel)$/,
    shown: false,
    deletes: false,
    below: true,
  }),
  ofChat('batches', 'batch', {
    creates: 'otherwise',
    cost: 'reserved',
    freePosts: cancel,
    deletes: false,
    below: true,
    isMoving: ({ status }) => !over.has(status),
  }),
  ofChat('fine_tuning/jobs', 'fine-tuning job', {
    freePosts: /^(?:cancel|pause)$/,
    deletes: false,
    below: true,
    isMoving: ({ status }) => !over.has(status),
  }),
  ofChat('vector_stores', 'vector store', {
    changes: 'POST',
    // A later expiry costs storage.
    freeChanges: description,
    freePosts: /^file_batches\/[^/]+\/cancel$/,
    below: true,
    isMoving: () => true,
  }),
  // Requests below a container keep it alive, and are charged with its session.
  ofChat('containers', 'container', { below: true, isMoving: () => true }),
  ofChat('evals', 'eval', {
    changes: 'POST',
    freeChanges: description,
    freePosts: /^runs\/[^/]+\/cancel$/,
    below: true,
    isMoving: () => true,
  }),
  ofMessages('files', 'file', { creates: 'form', cost: 'free', below: true, longestPage: 1000 }),
  ofMessages('messages/batches', 'message batch', {
    creates: 'otherwise',
    cost: 'reserved',
    freePosts: cancel,
    below: true,
    isMoving: ({ processing_status: status }) => status !== 'ended',
  }),
  ofGenerateContent('files', 'file', {
    creates: 'otherwise',
    cost: 'free',
    isMoving: ({ state, expirationTime: time }) => state === 'PROCESSING' || hasEnded(time),
  }),
  ofGenerateContent('cachedContents', 'cached content', {
    cost: 'reserved',
    changes: 'PATCH',
    isMoving: ({ expireTime: time }) => hasEnded(time),
  }),
  ofGenerateContent('fileSearchStores', 'file search store', {
    cost: 'free',
    below: true,
    isMoving: () => true,
  }),
  ofGenerateContent('batches', 'batch', {
    creates: 'otherwise',
    cost: 'reserved',
    listed: 'operations',
    isMoving: ({ done }) => done !== true,
  }),
];

/** Returns a collection by its name. Throws if there is none. */
export function collectionOf(format: ObjectFormat, name: string): Collection {
  const found = collections.find((one) => one.format === format && one.name === name);
  if (found === undefined) throw new Error(`${format} has no ${name}.`);
  return found;
}

/** Returns the id in a provider's description of an object; undefined where it has no valid id. */
export function idIn(
  { format, name }: Pick<Collection, 'format' | 'name'>,
  seen: JsonObject,
): string | undefined {
  const identifier = format === 'generate-content' ? seen['name'] : seen['id'];
  if (typeof identifier !== 'string') return undefined;
  const id = format === 'generate-content' ? identifier.replace(`${name}/`, '') : identifier;
  return isId(id) ? id : undefined;
}

/** Returns true for a valid id, whose characters have no meaning in a path. */
export function isId(text: string): boolean {
  return /^[\w-]{1,200}$/.test(text);
}
