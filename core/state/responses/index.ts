/** Types of the store of responses and conversations of the Responses API. */
import type { JsonObject } from '../../model/json.ts';

/** A stored response: one turn of the Responses format. */
export interface StoredResponse {
  /** `resp_…`, as the client knows it. */
  readonly id: string;
  /** Id of the API key that owns it. It is invisible to all others. */
  readonly owner: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** The response object, as the client saw it or will see it. */
  readonly response: JsonObject;
  /** The items that this turn's `input` added, each with an id. Earlier turns are found through `previous`. */
  readonly input: readonly JsonObject[];
  readonly previous?: string;
  /** The channel whose provider keeps this response under the same id; absent when only the gateway knows it. */
  readonly channel?: string;
  /** Unix milliseconds until which a background run must renew this; absent when it is not running. */
  readonly runsUntil?: number;
}

/** State of a response while it is made, without its large members. */
export interface ResponseState {
  /** The response object's `status`. */
  readonly status: string;
  /** As in {@link StoredResponse}. */
  readonly runsUntil?: number;
}

/** A conversation object: items that are put before a response's input and grow with it. */
export interface StoredConversation {
  /** `conv_…` */
  readonly id: string;
  readonly owner: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly metadata: JsonObject;
}

/** A page of items. */
export interface ItemPage {
  readonly items: readonly JsonObject[];
  readonly hasMore: boolean;
}

/** Selects items of a list. */
export interface ItemQuery {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** The id of the item that the page follows. */
  readonly after?: string;
}

/**
 * Responses and conversations in the database. A write is durable when its promise resolves; expired ones are not found. Visible to their owner
 * only. Rejects when the database fails. A row whose text is damaged counts as missing and is reported.
 */
export interface ResponseStore {
  /** Inserts or replaces. Items of `input` and of the response's `output` can be found by their ids from then on. */
  save(response: StoredResponse): Promise<void>;
  /** Replaces only while the stored status is one of `whileStatus`, else returns false. For cancelling a response that may end meanwhile. */
  saveIf(response: StoredResponse, whileStatus: readonly string[]): Promise<boolean>;
  /** Changes `runsUntil` alone, under the same condition: cheap, however large the response is. */
  renew(owner: string, id: string, runsUntil: number, whileStatus: readonly string[]): Promise<boolean>;
  find(owner: string, id: string): Promise<StoredResponse | undefined>;
  /** As `find`, without reading the large members. */
  state(owner: string, id: string): Promise<ResponseState | undefined>;
  /** False when there was none. */
  remove(owner: string, id: string): Promise<boolean>;
  /**
   * Returns a response and all before it, oldest first; undefined when one of them is unknown. Stops at a cycle. Rejects with a 400 when there
   * are more than 1000 of them, or when they are too large to be held in memory together.
   */
  chain(owner: string, id: string): Promise<readonly StoredResponse[] | undefined>;
  /** Returns an item of a stored response or conversation; of several responses that have it, that of the newest. */
  item(owner: string, id: string): Promise<JsonObject | undefined>;

  createConversation(conversation: StoredConversation, items: readonly JsonObject[]): Promise<void>;
  findConversation(owner: string, id: string): Promise<StoredConversation | undefined>;
  /** Replaces the metadata. False when there was no such conversation. */
  updateConversation(conversation: StoredConversation): Promise<boolean>;
  /** Removes it with its items. False when there was none. */
  removeConversation(owner: string, id: string): Promise<boolean>;
  /**
   * Appends items in one transaction, also when several processes append at the same time. Returns the stored items: one whose id the
   * conversation has already, or that has none, gets a new id. Undefined when there is no such conversation.
   */
  appendItems(
    owner: string,
    conversation: string,
    items: readonly JsonObject[],
  ): Promise<readonly JsonObject[] | undefined>;
  /** Undefined when `after` names no item of the conversation. A page of very large items ends before its limit. */
  listItems(owner: string, conversation: string, query: ItemQuery): Promise<ItemPage | undefined>;
  /** Returns all items, oldest first. Rejects with a 400 when they are too large to be held in memory together. */
  allItems(owner: string, conversation: string): Promise<readonly JsonObject[]>;
  /** One item of this conversation. */
  findItem(owner: string, conversation: string, item: string): Promise<JsonObject | undefined>;
  /** False when there was none. */
  removeItem(owner: string, conversation: string, item: string): Promise<boolean>;
}
