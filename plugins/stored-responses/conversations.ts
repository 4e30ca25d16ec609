/** The endpoints under `/v1/conversations`. */
import {
  GatewayError,
  isObject,
  wrongType,
  wrongValue,
  missingValue,
  type JsonObject,
  type JsonValue,
} from 'sluice';
import type { ResponseStore, StoredConversation } from './core-types.ts';
import { randomId, readItems, referenceIn, withIds } from './items.ts';
import { listBody, pageBody, readPageQuery } from './pages.ts';
import type { AddEndpoint } from './endpoint.ts';

const METADATA = { pairs: 16, name: 64, value: 512 };

/** Adds the paths under `/v1/conversations`. `now` gives Unix milliseconds. */
export function addConversationEndpoints(add: AddEndpoint, store: ResponseStore, now: () => number): void {
  const one = '/v1/conversations/:id';
  const items = `${one}/items`;
  const item = `${items}/:item`;

  const conversationOf = async (owner: string, id: string): Promise<StoredConversation> => {
    const found = await store.findConversation(owner, id);
    if (found === undefined) throw noConversation(id);
    return found;
  };

  /** Returns the items that a request adds, with what they only refer to in its place. */
  const itemsToAdd = async (owner: string, value: JsonValue | undefined): Promise<readonly JsonObject[]> =>
    withIds(
      await Promise.all(
        readItems(value).map(async (given, index) => {
          const reference = referenceIn(given);
          if (reference === undefined) return given;
          const kept = await store.item(owner, reference);
          if (kept === undefined) throw noReferredItem(reference, `items[${index}].id`);
          return kept;
        }),
      ),
    );

  add('POST', '/v1/conversations', async ({ owner, body }) => {
    const { items: first, metadata } = body;
    const conversation: StoredConversation = {
      id: randomId('conv'),
      owner,
      createdAt: Math.floor(now() / 1000),
      metadata: readMetadata(metadata),
    };
    const added = first === undefined || first === null ? [] : await itemsToAdd(owner, first);
    await store.createConversation(conversation, added);
    return conversationBody(conversation);
  });

  add('GET', one, async ({ owner, params: { id } }) => conversationBody(await conversationOf(owner, id)));

  add('POST', one, async ({ owner, params: { id }, body }) => {
    const conversation = await conversationOf(owner, id);
    if (body['metadata'] === undefined) throw missingValue('metadata');
    const changed = { ...conversation, metadata: readMetadata(body['metadata']) };
    if (!(await store.updateConversation(changed))) throw noConversation(id);
    return conversationBody(changed);
  });

  add('DELETE', one, async ({ owner, params: { id } }) => {
    if (!(await store.removeConversation(owner, id))) throw noConversation(id);
    return { id, object: 'conversation.deleted', deleted: true };
  });

  add('POST', items, async ({ owner, params: { id }, body }) => {
    await conversationOf(owner, id);
    if (body['items'] === undefined) throw missingValue('items');
    const kept = await store.appendItems(owner, id, await itemsToAdd(owner, body['items']));
    if (kept === undefined) throw noConversation(id);
    return listBody(kept, false);
  });

  add('GET', items, async ({ owner, params: { id }, query }) => {
    const wanted = readPageQuery(query);
    await conversationOf(owner, id);
    return pageBody(await store.listItems(owner, id, wanted));
  });

  add('GET', item, async ({ owner, params: { id, item: itemId } }) => {
    await conversationOf(owner, id);
    const found = await store.findItem(owner, id, itemId);
    if (found === undefined) throw noItem(itemId);
    return found;
  });

  add('DELETE', item, async ({ owner, params: { id, item: itemId } }) => {
    const conversation = await conversationOf(owner, id);
    if (!(await store.removeItem(owner, id, itemId))) throw noItem(itemId);
    return conversationBody(conversation);
  });
}

function conversationBody({ id, createdAt, metadata }: StoredConversation): JsonObject {
  return { id, object: 'conversation', created_at: createdAt, metadata };
}

function readMetadata(value: JsonValue | undefined): JsonObject {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw wrongType('metadata', 'an object');
  const pairs = Object.entries(value);
  if (pairs.length > METADATA.pairs) throw wrongValue('metadata', `at most ${METADATA.pairs} pairs`);
  for (const [name, text] of pairs) {
    const path = `metadata.${name.slice(0, METADATA.name)}`;
    if (name.length > METADATA.name)
      throw new GatewayError('invalid_value', `Names in metadata have at most ${METADATA.name} characters.`, {
        param: 'metadata',
      });
    if (typeof text !== 'string') throw wrongType(path, 'a string');
    if (text.length > METADATA.value) throw wrongValue(path, `at most ${METADATA.value} characters`);
  }
  return value;
}

function noConversation(id: string): GatewayError {
  return new GatewayError('not_found', `Conversation with id '${id.slice(0, 200)}' not found.`);
}

function noItem(id: string): GatewayError {
  return new GatewayError('not_found', `Item with id '${id.slice(0, 200)}' not found in this conversation.`);
}

function noReferredItem(id: string, param: string): GatewayError {
  return new GatewayError('invalid_value', `Item with id '${id.slice(0, 200)}' not found.`, { param });
}
