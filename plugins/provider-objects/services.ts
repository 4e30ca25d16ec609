/**
 * Services that the endpoints of provider objects share, and functions that several of them need: storing a new object, the 404, the query and
 * headers that are passed on.
 */
import { GatewayError, type JsonObject } from 'sluice';
import type { Call, InternalTools } from 'sluice/internal';
import type {
  Channel,
  ObjectCharge,
  ObjectStore,
  ProviderObject,
  Reservation,
  Settlement,
} from './core-types.ts';
import { sendRequest } from './send-request.ts';
import { idIn, kindOf, type Collection } from './collections.ts';
import { ownerOf } from './owner.ts';
import type { Finding } from './pin.ts';
import type { ProviderAccount } from './account.ts';
import type { Poller } from './poller.ts';

/** Services and options of the endpoints of provider objects. */
export interface ObjectServices {
  readonly store: ObjectStore;
  readonly finding: Finding;
  readonly poller: Poller;
  readonly tools: InternalTools;
  /** Bytes of one uploaded body, and of an answer that is read whole. */
  readonly fileSize: number;
  readonly answerSize: number;
  /** Price in dollars of storing a million tokens for an hour, by the provider's names of models. */
  readonly cacheStorage: Readonly<Record<string, number>>;
  /** Returns the price of requests in a batch of a channel's provider, as a share of their usual price. */
  shareOf(channel: Channel): number;
  /** Base URL of the gateway for clients. Undefined: the address that the request was sent to. */
  readonly publicUrl: string | undefined;
}

/** A new object, and what is stored with it. */
export interface NewObject {
  readonly collection: Collection;
  readonly account: ProviderAccount;
  /** Description by the provider. */
  readonly seen: JsonObject;
  readonly known?: JsonObject;
  readonly charge?: ObjectCharge;
  /** Reservation that covers the charge. */
  readonly reservation?: Reservation | undefined;
  /** Settlements that are charged at once. */
  readonly settlements?: readonly Settlement[];
}

/** Returns the stored form of an object that a provider has described. Throws 502 where the description has no id. */
export function objectOf(
  owner: string,
  { collection, account, seen, known, charge }: NewObject,
): ProviderObject {
  const id = idIn(collection, seen);
  if (id === undefined)
    throw new GatewayError('upstream_error', `The upstream returned no id of a ${collection.noun}.`, {
      origin: 'upstream',
    });
  return {
    owner,
    kind: kindOf(collection),
    id,
    channel: account.channel.id,
    key: account.key.id,
    createdAt: Date.now(),
    seen,
    known: known ?? {},
    ...(charge === undefined ? {} : { charge }),
  };
}

/**
 * Stores an object that a provider has just created. Where that fails, deletes it at the provider, because nobody could find it again, and throws
 * 503.
 */
export async function keep(
  call: Call,
  made: NewObject,
  { store, poller, tools }: ObjectServices,
): Promise<void> {
  const object = objectOf(ownerOf(call), made);
  try {
    await store.create(object, {
      ...(made.charge === undefined ? {} : { pollAt: poller.nextPollAt(0) }),
      ...(made.reservation === undefined ? {} : { reservation: made.reservation }),
      ...(made.settlements === undefined ? {} : { settlements: made.settlements }),
    });
  } catch (error) {
    const { collection, account } = made;
    tools.log.error(
      { error, id: object.id, channel: object.channel },
      'an object of a provider could not be stored',
    );
    await deleteAtProvider(call, collection, account, object.id).catch(() => {});
    throw new GatewayError('server_is_overloaded', 'The gateway cannot keep this now.', {
      retryAfter: 5,
      cause: error,
    });
  }
}

/** Deletes an object at its provider. A batch is cancelled, because it runs, and so is what cannot be deleted. */
async function deleteAtProvider(
  call: Call,
  collection: Collection,
  account: ProviderAccount,
  id: string,
): Promise<void> {
  const { format, name, creates, deletes } = collection;
  const path = `/${name}/${id}`;
  const isCancelled = !deletes || (creates === 'otherwise' && name.endsWith('batches'));
  const cancel = format === 'generate-content' ? `${path}:cancel` : `${path}/cancel`;
  await sendRequest(
    call,
    account,
    format,
    isCancelled ? { method: 'POST', path: cancel, body: '{}' } : { method: 'DELETE', path },
  );
}

/** Returns the 404 error for an object that does not exist or belongs to another key. */
export function noObject({ noun }: Collection, id: string): GatewayError {
  return new GatewayError('not_found', `There is no ${noun} ${id.slice(0, 200)}.`);
}

/** Returns the query parameters and headers of a request that are sent to the provider: no credentials, and none that are for the gateway. */
export function forwardedParameters({ wire: { query, headers } }: Call): {
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
} {
  const own = new Set(['key', 'access_token', 'channel']);
  const passedQuery: Record<string, string> = {};
  for (const [name, value] of query)
    if (!own.has(name) && /^[\w.[\]-]{1,100}$/.test(name)) passedQuery[name] = value;
  const passed: Record<string, string> = {};
  for (const name of ['anthropic-version', 'anthropic-beta', 'openai-beta']) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return { query: passedQuery, headers: passed };
}
