/** Finds the channel and key that keep an object, and selects those where a new object is created. */
import { caller, GatewayError, type ApiKey, type ChannelKey, mayUseSome } from 'sluice';
import { type Call, type InternalTools } from 'sluice/internal';
import type { Channel, ProviderObject } from './core-types.ts';
import type { Collection } from './collections.ts';

/** The channel and the key (provider account) that keep an object. */
export interface ProviderAccount {
  readonly channel: Channel;
  readonly key: ChannelKey;
}

/** Data by which the place of a new object is chosen. */
export interface AccountPreferences {
  /** Place of the objects that the new one refers to. */
  readonly pinned?: ProviderAccount | undefined;
  /** The models that it names, by their public names. */
  readonly models?: readonly string[];
}

/** Header by which a client selects the channel of a new object. The query parameter `channel` does the same. */
export const channelHeader = 'x-sluice-channel';

type Catalog = InternalTools['catalog'];

/** Returns true for a channel whose provider keeps such objects. */
export function keeps({ keeps: kept }: Channel, { format, name }: Collection): boolean {
  return kept?.[format]?.includes(name) === true;
}

/** Returns the place of an object. Throws 503 when its channel is not in the configuration any more. */
export function accountOf(
  { channel: id, key: keyId }: ProviderObject,
  { channels }: Catalog,
): ProviderAccount {
  const channel = channels.find((one) => one.id === id);
  // A key that is no longer there has been replaced by another of the same account.
  const key = channel?.keys.find((one) => one.id === keyId) ?? channel?.keys[0];
  if (channel === undefined || key === undefined)
    throw new GatewayError('no_available_channel', 'The channel that stores this object was removed.', {
      retryable: false,
    });
  return { channel, key };
}

/**
 * Returns the place for a new object: that of the objects that it refers to, else the channel that the client names, else the best one that serves
 * its models, else the one with the highest priority that keeps such objects and that the key may use. Throws where there is none.
 */
export function selectAccount(
  call: Call,
  collection: Collection,
  catalog: Catalog,
  preferences: AccountPreferences,
): ProviderAccount {
  const { models = [], pinned } = preferences;
  const named = namedChannel(call);
  const account =
    pinned ?? (named === undefined ? findBestAccount(call, collection, catalog, models) : undefined);
  const channel = account?.channel ?? catalog.channels.find(({ id }) => id === named);
  if (channel === undefined || !keeps(channel, collection) || !mayUse(call.get(caller), channel))
    throw named === undefined ? noneKeeps(collection) : noSuchChannel(named, collection);
  const key = account?.key ?? channel.keys[0];
  if (key === undefined || !catalog.isOn(channel.id))
    throw new GatewayError('no_available_channel', 'The channel for this is switched off at the moment.');
  const stranger = models.find((model) => channel.upstreamModel(model) === undefined);
  if (stranger !== undefined)
    throw new GatewayError(
      'invalid_value',
      `The model "${stranger}" is not served by the channel at which this ${collection.noun} has to be made.`,
      { param: 'model' },
    );
  return { channel, key };
}

function findBestAccount(
  call: Call,
  collection: Collection,
  catalog: Catalog,
  [first, ...others]: readonly string[],
): ProviderAccount | undefined {
  const isSuitable = (channel: Channel): boolean =>
    keeps(channel, collection) && others.every((model) => channel.upstreamModel(model) !== undefined);
  if (first === undefined) {
    const key = call.get(caller);
    const suitable = catalog.channels
      .filter((channel) => catalog.isOn(channel.id) && isSuitable(channel) && mayUse(key, channel))
      .toSorted((one, other) => other.priority - one.priority);
    return firstAccountOf(suitable[0]);
  }
  const candidates = catalog.candidates(first);
  if (candidates.length === 0)
    throw new GatewayError(
      'no_available_channel',
      `No channel serves the model "${first}". GET /v1/models lists the available models.`,
      { param: 'model', retryable: catalog.serves(first) },
    );
  return firstAccountOf(candidates.find(({ channel }) => isSuitable(channel))?.channel);
}

function firstAccountOf(channel: Channel | undefined): ProviderAccount | undefined {
  const key = channel?.keys[0];
  return channel === undefined || key === undefined ? undefined : { channel, key };
}

function namedChannel({ wire: { headers, query } }: Call): string | undefined {
  const named = headers[channelHeader] ?? query.get('channel') ?? undefined;
  return typeof named === 'string' && named !== '' ? named : undefined;
}

/** Returns true when a key may use a channel: a key that is restricted to models may use the channels that serve one of them. */
export function mayUse(key: Pick<ApiKey, 'models'> | undefined, channel: Channel): boolean {
  const allowed = key?.models;
  if (allowed === undefined) return true;
  return (
    allowed.some((name) => !name.includes('*') && channel.upstreamModel(name) !== undefined) ||
    mayUseSome(allowed, [...channel.models, ...(channel.listed?.() ?? [])])
  );
}

function noneKeeps({ noun }: Collection): GatewayError {
  return new GatewayError('endpoint_not_supported', `No channel available to this request stores a ${noun}.`);
}

function noSuchChannel(name: string, { noun }: Collection): GatewayError {
  return new GatewayError(
    'invalid_value',
    `There is no channel "${name.slice(0, 100)}" that this API key may use and that stores a ${noun}.`,
    { param: channelHeader },
  );
}
