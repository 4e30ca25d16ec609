/** Finds the channels and targets that serve a model, and lists the models that clients can call. */
import type { Channel, Target } from '../sdk/call.ts';
import type { Operation } from '../sdk/format.ts';
import type { ListedModel } from '../model/event.ts';
import { isPublished } from '../models/catalogue.ts';
import { thinksAtAll } from '../models/profile.ts';

/** A channel that serves a model, and how it ranks among others. */
export interface Candidate {
  readonly channel: Channel;
  /** Channels of equal rank share the calls. Those of a lower rank are tried when all of a higher rank have failed. */
  readonly rank: number;
  /** One target for each key of the channel, at least one. The objects stay the same while the model is cached. */
  readonly targets: readonly Target[];
}

/** Lookup of channels by model. */
export interface Catalog {
  readonly channels: readonly Channel[];
  /** Returns true when some channel serves this public name (exact, mapped, or by pattern). */
  serves(model: string): boolean;
  /** Returns true when a channel lists the exact name, or a pattern matches a known model of this name. Such a name is never split for suffixes. */
  isKnown(model: string): boolean;
  /** Returns true for the name of a model in the list of known models: see `isPublished` of models/catalogue. */
  isInModelList(model: string): boolean;
  /** Returns the targets of a model, best first, each channel with its first key, also channels without the operation. */
  targets(model: string): readonly Target[];
  /**
   * Returns the channels of a model with all their keys, the highest rank first. With an operation, returns only channels that support it.
   * The array stays the same while the model is cached and no channel changes.
   */
  candidates(model: string, operation?: Operation): readonly Candidate[];
  /** Returns all known models that can be called, sorted: exact names, and known models that match patterns. */
  list(): readonly ListedModel[];
  /** Clears the caches, because the models of channels have changed. */
  refresh(): void;
  /** Returns false for a channel that was disabled at run time. */
  isOn(channel: string): boolean;
  /** Disables the channels with these ids, and enables all others. Disabled channels are not targets. Running calls continue. */
  switchOff(channels: ReadonlySet<string>): void;
}

/** Builds the catalog. The order of targets is: exact name before pattern, priority, then a draw by weight. */
export function createCatalog(channels: readonly Channel[], startedAt: number): Catalog {
  const byName = new ChannelsByName(channels);
  let named: ReadonlySet<string> | undefined;
  let listing: readonly ListedModel[] | undefined;

  let off: ReadonlySet<string> = new Set();
  const known = new Map<string, Remembered>();
  const remembered = (model: string): Remembered => {
    let found = known.get(model);
    if (found === undefined) {
      const all = byName
        .of(model)
        .flatMap((channel) => candidate(channel, model) ?? [])
        .toSorted((a, b) => b.rank - a.rank);
      found = { all, fit: new Map() };
      // Caches a limited number of names, because clients can send any number of different ones.
      if (known.size < 1000 && model.length < 200) known.set(model, found);
    }
    return found;
  };

  const candidates = (model: string, operation?: Operation): readonly Candidate[] => {
    const { all, fit } = remembered(model);
    let found = fit.get(operation);
    if (found === undefined) {
      const isFit = ({ channel }: Candidate): boolean =>
        !off.has(channel.id) && (operation === undefined || canDo(channel, operation));
      fit.set(operation, (found = all.every(isFit) ? all : all.filter(isFit)));
    }
    return found;
  };

  const targets = (model: string): readonly Target[] => {
    const found = candidates(model);
    if (found.length <= 1) {
      const target = found[0]?.targets[0];
      return target === undefined ? [] : [target];
    }
    return found
      .map(({ channel, targets: [target], rank }) => ({
        target,
        rank,
        draw: Math.random() ** (1 / Math.max(channel.weight, 1e-9)),
      }))
      .toSorted((a, b) => b.rank - a.rank || b.draw - a.draw)
      .flatMap(({ target }) => target ?? []);
  };

  return {
    channels,
    serves: (model) => byName.of(model).some((channel) => channel.upstreamModel(model) !== undefined),
    isInModelList: isPublished,
    isKnown: (model) => (named ??= new Set(channels.flatMap(namesOf))).has(model),
    targets,
    candidates,
    list: () =>
      (listing ??= listOf(
        channels.filter(({ id }) => !off.has(id)),
        startedAt,
      )),
    refresh: () => {
      known.clear();
      named = undefined;
      listing = undefined;
    },
    isOn: (channel) => !off.has(channel),
    switchOff: (wanted) => {
      off = new Set(wanted);
      for (const { fit } of known.values()) fit.clear();
      listing = undefined;
    },
  };
}

/** All channels of a model, and its enabled channels by operation. */
interface Remembered {
  readonly all: readonly Candidate[];
  readonly fit: Map<Operation | undefined, readonly Candidate[]>;
}

/** Index of channels by model name. Avoids a scan of all channels, because a gateway may have thousands. */
class ChannelsByName {
  readonly #channels: readonly Channel[];
  readonly #exact = new Map<string, number[]>();
  /** Indexes of the channels that serve a pattern, or all models that their provider lists. */
  readonly #open: number[] = [];

  constructor(channels: readonly Channel[]) {
    this.#channels = channels;
    for (const [index, channel] of channels.entries()) {
      const exact = new Set(exactNames(channel));
      if (exact.size === 0 || exact.size < new Set(channel.models).size) this.#open.push(index);
      else for (const name of exact) this.#add(name, index);
    }
  }

  /** Returns the channels in the order of the config. */
  of(model: string): readonly Channel[] {
    const indexes = [...(this.#exact.get(model) ?? []), ...this.#open];
    return indexes.toSorted((one, other) => one - other).flatMap((index) => this.#channels[index] ?? []);
  }

  #add(name: string, index: number): void {
    const places = this.#exact.get(name);
    if (places === undefined) this.#exact.set(name, [index]);
    else places.push(index);
  }
}

function exactNames({ models }: Channel): readonly string[] {
  return models.filter((name) => !name.includes('*'));
}

function namesOf(channel: Channel): readonly string[] {
  return channel.listed?.() ?? exactNames(channel);
}

/** Returns each model once, from the channel of the highest rank, and among equal ranks from the first one in the config. */
function listOf(channels: readonly Channel[], startedAt: number): readonly ListedModel[] {
  const best = new Map<string, { readonly rank: number; readonly channel: Channel }>();
  for (const channel of channels) {
    const exact = new Set(exactNames(channel));
    for (const name of namesOf(channel)) {
      const rank = rankOf(channel, exact.has(name));
      if (rank > (best.get(name)?.rank ?? -Infinity)) best.set(name, { rank, channel });
    }
  }
  return [...best]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([id, { channel }]) => {
      const upstreamModel = channel.upstreamModel(id);
      return upstreamModel === undefined ? [] : [listed(id, channel, upstreamModel, startedAt)];
    });
}

function rankOf({ priority }: Channel, isExact: boolean): number {
  return (isExact ? 1e9 : 0) + priority;
}

function candidate(channel: Channel, model: string): Candidate | undefined {
  const upstreamModel = channel.upstreamModel(model);
  if (upstreamModel === undefined) return undefined;
  const rank = rankOf(channel, channel.models.includes(model));
  const traits = channel.traits(upstreamModel);
  return {
    channel,
    rank,
    targets: channel.keys.map((key) => ({ channel, key, model: upstreamModel, traits })),
  };
}

/** Operations that the gateway implements for every chat channel: token counts and compaction. */
const overChat: ReadonlySet<Operation> = new Set(['count-tokens', 'compact']);

function canDo({ speaks }: Channel, operation: Operation): boolean {
  return speaks[operation] !== undefined || (overChat.has(operation) && speaks.chat !== undefined);
}

function listed(id: string, channel: Channel, upstreamModel: string, created: number): ListedModel {
  const { operation, ...known } = channel.known?.(upstreamModel) ?? {};
  const traits = channel.traits(upstreamModel);
  // General traits of a channel kind describe chat models only.
  const chats = operation === undefined;
  const inputLimit = (chats ? traits.inputLimit : undefined) ?? known.inputLimit;
  const outputLimit = (chats ? traits.outputLimit : undefined) ?? known.outputLimit;
  return {
    id,
    created,
    ownedBy: channel.id,
    ...(operation === undefined ? {} : { operation }),
    ...(inputLimit === undefined ? {} : { inputLimit }),
    ...(outputLimit === undefined ? {} : { outputLimit }),
    ...(traits.reasoning === undefined || !chats ? {} : { thinking: thinksAtAll(traits) }),
    ...(known.takes === undefined ? {} : { takes: known.takes }),
    ...(known.can === undefined ? {} : { can: known.can }),
    ...(known.cannot === undefined ? {} : { cannot: known.cannot }),
  };
}
