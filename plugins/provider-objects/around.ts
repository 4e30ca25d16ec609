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
import { ask } from './ask.ts';
import { idIn, kindOf, type Collection } from './collections.ts';
import { ownerOf } from './owner.ts';
import type { Finding } from './pin.ts';
import type { Place } from './place.ts';
import type { Poller } from './poller.ts';

/** What the paths of objects work with. */
export interface Around {
  readonly store: ObjectStore;
  readonly finding: Finding;
  readonly poller: Poller;
  readonly tools: InternalTools;
  /** Bytes of one uploaded body, and of an answer that is read whole. */
  readonly fileSize: number;
  readonly answerSize: number;
  /** What it costs to keep a million tokens for an hour, in dollars, by the provider's names of models. */
  readonly cacheStorage: Readonly<Record<string, number>>;
  /** What the requests of a batch cost at a channel's provider, as a share of what they cost by themselves. */
  shareOf(channel: Channel): number;
  /** Where clients reach this gateway; undefined: where this one did. */
  readonly publicUrl: string | undefined;
}

/** What is kept of a new object besides its description. */
export interface NewObject {
  readonly collection: Collection;
  readonly place: Place;
  /** As its provider described it. */
  readonly seen: JsonObject;
  readonly known?: JsonObject;
  readonly charge?: ObjectCharge;
  /** What is claimed for the charge until then. */
  readonly reservation?: Reservation | undefined;
  /** What is charged now. */
  readonly settlements?: readonly Settlement[];
}

/** The object that a provider has described. Throws 502 where the description has no id. */
export function objectOf(
  owner: string,
  { collection, place, seen, known, charge }: NewObject,
): ProviderObject {
  const id = idIn(collection, seen);
  if (id === undefined)
    throw new GatewayError('upstream_error', `The upstream named no ${collection.noun}.`, {
      origin: 'upstream',
    });
  return {
    owner,
    kind: kindOf(collection),
    id,
    channel: place.channel.id,
    key: place.key.id,
    createdAt: Date.now(),
    seen,
    known: known ?? {},
    ...(charge === undefined ? {} : { charge }),
  };
}

/**
 * Keeps what a provider has just made. Where that fails the provider is told to take it back, as nobody would find it again, and the client
 * is answered 503.
 */
export async function keep(call: Call, made: NewObject, { store, poller, tools }: Around): Promise<void> {
  const object = objectOf(ownerOf(call), made);
  try {
    await store.create(object, {
      ...(made.charge === undefined ? {} : { askAt: poller.nextAsk(0) }),
      ...(made.reservation === undefined ? {} : { reservation: made.reservation }),
      ...(made.settlements === undefined ? {} : { settlements: made.settlements }),
    });
  } catch (error) {
    const { collection, place } = made;
    tools.log.error(
      { error, id: object.id, channel: object.channel },
      'an object of a provider could not be kept',
    );
    await takeBack(call, collection, place, object.id).catch(() => {});
    throw new GatewayError('server_is_overloaded', 'The gateway cannot keep this now.', {
      retryAfter: 5,
      cause: error,
    });
  }
}

/** Deletes an object at its provider. A batch is cancelled, because it runs, and so is what cannot be deleted. */
async function takeBack(call: Call, collection: Collection, place: Place, id: string): Promise<void> {
  const { format, name, creates, deletes } = collection;
  const path = `/${name}/${id}`;
  const isCancelled = !deletes || (creates === 'otherwise' && name.endsWith('batches'));
  const cancel = format === 'generate-content' ? `${path}:cancel` : `${path}/cancel`;
  await ask(
    call,
    place,
    format,
    isCancelled ? { method: 'POST', path: cancel, body: '{}' } : { method: 'DELETE', path },
  );
}

/** 404 for an object that is not there, or not the caller's. */
export function noObject({ noun }: Collection, id: string): GatewayError {
  return new GatewayError('not_found', `There is no ${noun} ${id.slice(0, 200)}.`);
}

/** What of a request's query and headers goes to the provider: never a credential, nor what is for the gateway alone. */
export function passedWords({ wire: { query, headers } }: Call): {
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
} {
  const own = new Set(['key', 'access_token', 'channel']);
  const told: Record<string, string> = {};
  for (const [name, value] of query)
    if (!own.has(name) && /^[\w.[\]-]{1,100}$/.test(name)) told[name] = value;
  const passed: Record<string, string> = {};
  for (const name of ['anthropic-version', 'anthropic-beta', 'openai-beta']) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return { query: told, headers: passed };
}
