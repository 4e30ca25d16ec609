/** Table of the request members that name provider objects, by API. */
import type { ObjectFormat } from './collections.ts';

/**
 * One way in which a request names an object that a provider keeps. The member is looked for in JSON bodies at any depth, in form fields
 * (also as the last name in brackets: `mask[file_id]`), in the query, in lines of batch files and in messages of sockets. Its value is an
 * id or a list of ids. Names are compared in lower case, because some providers do the same.
 */
export interface ReferenceRow {
  readonly member: string;
  /** The collection that the object belongs to. */
  readonly collection: string;
  /** The `type` of the JSON object that has the member. Default: any object. */
  readonly type?: string;
  /** `objects`: only requests that make or change objects have it, so that calls are not searched for it. Default: all requests. */
  readonly bodies?: 'objects';
  /** True where providers make such objects during calls too: an id that no key owns may be used. */
  readonly madeInCalls?: true;
}

/** References of one API. */
export interface ReferenceTable {
  readonly rows: readonly ReferenceRow[];
  /**
   * Matches the text of every call that has one of the members, unless letters are written as codes: a test holds it to the rows. One
   * expression takes 4 to 8 us for 28 KB where a search for each member took 30 to 90, because its alternatives begin with few letters.
   */
  readonly sign: RegExp;
  /** Members in which nothing refers to an object: arguments and schemas of tools, and sources of citations. */
  readonly ignored: ReadonlySet<string>;
}

const ignored = [
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

/** The references of each API whose objects providers keep. A test compares the rows with the requests of the official SDKs. */
export const referenceTables: Readonly<Record<ObjectFormat, ReferenceTable>> = {
  'chat-completions': {
    rows: [
      { member: 'file_id', collection: 'files' },
      { member: 'file_ids', collection: 'files' },
      { member: 'input_file_id', collection: 'files' },
      { member: 'id', type: 'file_id', collection: 'files' },
      { member: 'training_file', collection: 'files', bodies: 'objects' },
      { member: 'validation_file', collection: 'files', bodies: 'objects' },
      { member: 'vector_store_id', collection: 'vector_stores' },
      { member: 'vector_store_ids', collection: 'vector_stores' },
      { member: 'container', collection: 'containers', madeInCalls: true },
      { member: 'container_id', collection: 'containers', madeInCalls: true },
    ],
    sign: /[lr]e_id|ainer(?:_id)?["\]]/i,
    ignored: new Set(ignored),
  },
  messages: {
    rows: [{ member: 'file_id', collection: 'files' }],
    // A class of one letter, because the engine compares a plain word letter by letter.
    sign: /[f]ile_id/i,
    ignored: new Set(ignored),
  },
  'generate-content': {
    rows: [
      { member: 'fileUri', collection: 'files' },
      { member: 'file_uri', collection: 'files' },
      { member: 'fileName', collection: 'files', bodies: 'objects' },
      { member: 'file_name', collection: 'files', bodies: 'objects' },
      { member: 'cachedContent', collection: 'cachedContents' },
      { member: 'cached_content', collection: 'cachedContents' },
      { member: 'fileSearchStoreNames', collection: 'fileSearchStores' },
      { member: 'file_search_store_names', collection: 'fileSearchStores' },
    ],
    sign: /(?:file_?uri|ached_?content|tore_?names)["\]]/i,
    ignored: new Set([...ignored, 'args', 'response', 'responseSchema', 'responseJsonSchema']),
  },
};

/**
 * References of the Responses API to earlier turns. The plugin `stored-responses` checks that the key owns them, and lines of batch files
 * may have none, because a provider would look them up in the account that all keys share.
 */
export const turnReferences = [
  { member: 'previous_response_id', depth: 'the body', names: 'a response' },
  { member: 'conversation', depth: 'the body, as an id or an object with one', names: 'a conversation' },
  { member: 'comparison_response_id', depth: '`prompt_cache_options`', names: 'a response' },
  { member: 'id', depth: 'an `item_reference` of `input`', names: 'an item' },
] as const;
