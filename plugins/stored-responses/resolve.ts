/** Looks up the earlier responses, conversations and items that a request refers to, and writes them out in its input. */
import { caller, GatewayError, isObject, type JsonObject, type JsonValue, type Call } from 'sluice';
import type { ResponseStore, StoredResponse } from './core-types.ts';
import { checkPaidMembers } from '../_paid-members.ts';
import { itemsOnConnection } from './connection-turns.ts';
import { referenceIn } from './items.ts';

/** A request with all that it refers to. */
export interface Resolved {
  /** The body with all references replaced by items; undefined where it refers to nothing. */
  readonly expanded: JsonObject | undefined;
  /** Items of earlier turns, which come before the client's own in the expanded input. */
  readonly history: readonly JsonObject[];
  /** Returns the client's own input as items, with references replaced. A function, because a long input is read only when it is stored. */
  readonly input: () => readonly JsonObject[];
  /** The stored response that this turn follows. */
  readonly previous?: string;
  /** The conversation that grows with this turn. */
  readonly conversation?: string;
  /** The channel whose provider stores the earlier turns too. */
  readonly channel?: string | undefined;
}

/** Returns the owner of the responses of a call: the id of its key, or an empty text without a key. */
export function ownerOf(call: Call): string {
  return call.get(caller)?.id ?? '';
}

/** Returns true for a body that refers to stored responses, conversations or items. */
function refersToKept({ previous_response_id, conversation, input }: JsonObject): boolean {
  if (typeof previous_response_id === 'string' || given(conversation)) return true;
  return Array.isArray(input) && input.some((item) => isObject(item) && referenceIn(item) !== undefined);
}

/** Looks up what a request refers to. Throws 400 or 404 where the caller has no such object, also where another caller has it. */
export async function resolve(call: Call, store: ResponseStore, maxTurns: number): Promise<Resolved> {
  await checkComparison(call, store);
  if (!refersToKept(call.bodyOutline))
    return { expanded: undefined, history: [], input: () => inputItems(call.body.input) };
  const { body } = call;
  const written = inputItems(body.input);
  const found = await earlierTurns(call, store, maxTurns);
  // A trigger is valid as the last item of the input only. Those in the history were handled before.
  const earlier = { ...found, history: found.history.filter(({ type }) => type !== 'compaction_trigger') };
  const places = new Map(earlier.history.map((item) => [item.id, item]));
  const input: JsonObject[] = [];
  for (const [index, item] of written.entries()) {
    const id = referenceIn(item);
    input.push(id === undefined ? item : (places.get(id) ?? (await referred(call, store, id, index))));
  }
  // Stored items may contain tools that were not checked for this key.
  checkPaidMembers(call.get(caller), { input: [...earlier.history, ...input] });
  const { previous_response_id: _, conversation: __, ...rest } = body;
  return { ...earlier, input: () => input, expanded: { ...rest, input: [...earlier.history, ...input] } };
}

/** Throws 404 where `comparison_response_id` names a response that is not the caller's. */
async function checkComparison(call: Call, store: ResponseStore): Promise<void> {
  const { prompt_cache_options: options } = call.bodyOutline;
  if (!isObject(options) || !given(options['comparison_response_id'])) return;
  const { prompt_cache_options: whole } = call.body;
  const id = isObject(whole) ? String(whole['comparison_response_id']) : '';
  if (itemsOnConnection(call, id) !== undefined) return;
  if ((await store.state(ownerOf(call), id)) === undefined)
    throw new GatewayError('not_found', `Response with id '${id.slice(0, 200)}' not found.`, {
      param: 'prompt_cache_options.comparison_response_id',
    });
}

/** Returns the items of an `input`: a text is one message of the user. */
function inputItems(input: JsonValue | undefined): readonly JsonObject[] {
  if (typeof input === 'string')
    return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }];
  return Array.isArray(input) ? input.filter(isObject) : [];
}

/** Returns the items of a response's `output`. */
export function outputItems({ output }: JsonObject): readonly JsonObject[] {
  return Array.isArray(output) ? output.filter(isObject) : [];
}

function given(value: JsonValue | undefined): value is Exclude<JsonValue, null> {
  return value !== undefined && value !== null;
}

type Earlier = Pick<Resolved, 'history' | 'previous' | 'conversation' | 'channel'>;

async function earlierTurns(call: Call, store: ResponseStore, maxTurns: number): Promise<Earlier> {
  const { previous_response_id: id, conversation } = call.body;
  if (given(conversation)) {
    if (typeof id === 'string') {
      throw new GatewayError(
        'invalid_request',
        'previous_response_id and conversation exclude each other: send one of them.',
        { param: 'previous_response_id' },
      );
    }
    return fromConversation(call, store, conversation);
  }
  return typeof id === 'string' ? fromChain(call, store, id, maxTurns) : { history: [] };
}

async function fromConversation(call: Call, store: ResponseStore, conversation: JsonValue): Promise<Earlier> {
  const id = isObject(conversation) ? conversation.id : conversation;
  const owner = ownerOf(call);
  const found = typeof id === 'string' ? await store.findConversation(owner, id) : undefined;
  if (found === undefined) {
    throw new GatewayError('not_found', `Conversation with id '${String(id)}' not found.`, {
      param: 'conversation',
    });
  }
  return { history: await store.allItems(owner, found.id), conversation: found.id };
}

async function fromChain(call: Call, store: ResponseStore, id: string, maxTurns: number): Promise<Earlier> {
  const onConnection = itemsOnConnection(call, id);
  if (onConnection !== undefined) return { history: onConnection };
  const owner = ownerOf(call);
  const chain = await store.chain(owner, id);
  const last = chain?.at(-1);
  if (chain === undefined || last === undefined || !canBeFollowed(last)) {
    throw new GatewayError('previous_response_not_found', `Previous response with id '${id}' not found.`, {
      param: 'previous_response_id',
    });
  }
  if (chain.length > maxTurns) {
    throw new GatewayError(
      'invalid_request',
      `The conversation before response '${id}' has more than ${maxTurns} turns: send its items as input instead.`,
      { param: 'previous_response_id' },
    );
  }
  const turns = chain.flatMap(({ input, response }) => [...input, ...outputItems(response)]);
  return {
    history: [...(await conversationBefore(chain, store)), ...turns],
    previous: last.id,
    ...(last.channel === undefined ? {} : { channel: last.channel }),
  };
}

/** Returns true for a response that can be continued: one that failed, was cancelled or still runs cannot. */
function canBeFollowed({ response }: StoredResponse): boolean {
  return response.status === 'completed' || response.status === 'incomplete';
}

/** Returns the items of a conversation before the first turn of a chain, where that turn was part of a conversation. */
async function conversationBefore(
  chain: readonly StoredResponse[],
  store: ResponseStore,
): Promise<readonly JsonObject[]> {
  const [first] = chain;
  const conversation = first?.response.conversation;
  if (first === undefined || !isObject(conversation) || typeof conversation.id !== 'string') return [];
  const items = await store.allItems(first.owner, conversation.id);
  const own = new Set([...first.input, ...outputItems(first.response)].map((item) => item.id));
  const begins = items.findIndex((item) => own.has(item.id));
  return begins < 0 ? [] : items.slice(0, begins);
}

async function referred(call: Call, store: ResponseStore, id: string, index: number): Promise<JsonObject> {
  const found = await store.item(ownerOf(call), id);
  if (found !== undefined) return found;
  throw new GatewayError('not_found', `Item with id '${id}' not found.`, { param: `input[${index}].id` });
}
