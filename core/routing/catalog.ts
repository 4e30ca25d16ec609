import type { Channel } from '../channel.ts';
import type { Operation } from '../formats/format.ts';
import type { ListedModel } from '../model/event.ts';
import type { Target } from './target.ts';

/** A channel that serves a model, and how it ranks among others. */
export interface Candidate {
  readonly channel: Channel;
  /** Those of equal rank share the calls; a lower one is asked when all higher ones have failed. */
  readonly rank: number;
  /** One for each key of the channel, at least one. The same objects each time, as long as the model is remembered. */
  readonly targets: readonly Target[];
}

/** Which channel serves which model. */
export interface Catalog {
  readonly channels: readonly Channel[];
  /** True when some channel serves this public name (exact, mapped, or by pattern). */
  serves(model: string): boolean;
  /** True when a channel names it exactly: such a name is never taken apart for suffixes. */
  names(model: string): boolean;
  /** The targets of a model, best first, each channel with its first key; all of them, also those that do not speak the operation. */
  targets(model: string): readonly Target[];
  /** All channels of a model with all their keys, the highest rank first; with an operation, those alone that can do it. */
  candidates(model: string, operation?: Operation): readonly Candidate[];
  /** Every model with an exact name that can be called now, sorted. */
  list(): readonly ListedModel[];
  /** False for a channel that was switched off while the gateway runs. */
  isOn(channel: string): boolean;
  /** Switches channels off by their ids, and all others on: those that are off are no targets. Calls that run go on. */
  switchOff(channels: ReadonlySet<string>): void;
}

/** Builds the catalog. The order of targets is: exact name before pattern, priority, then a draw by weight. */
export function createCatalog(channels: readonly Channel[], startedAt: number): Catalog {
  const exact = new Set<string>();
  for (const channel of channels) for (const name of channel.models) if (!name.includes('*')) exact.add(name);

  let off: ReadonlySet<string> = new Set();
  const known = new Map<string, readonly Candidate[]>();
  const all = (model: string): readonly Candidate[] => {
    let found = known.get(model);
    if (found === undefined) {
      found = channels
        .flatMap((channel) => candidate(channel, model) ?? [])
        .toSorted((a, b) => b.rank - a.rank);
      // Names repeat; a stranger's flood of new ones is looked up each time and fills no memory.
      if (known.size < 1000 && model.length < 200) known.set(model, found);
    }
    return found;
  };

  const candidates = (model: string, operation?: Operation): readonly Candidate[] => {
    const found = all(model);
    const isFit = ({ channel }: Candidate): boolean =>
      !off.has(channel.id) && (operation === undefined || canDo(channel, operation));
    return found.every(isFit) ? found : found.filter(isFit);
  };

  const targets = (model: string): readonly Target[] => {
    const found = candidates(model);
    if (found.length <= 1) return found.flatMap(({ targets: [target] }) => target ?? []);
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
    serves: (model) =>
      exact.has(model) || channels.some((channel) => channel.upstreamModel(model) !== undefined),
    names: (model) => exact.has(model),
    targets,
    candidates,
    list: () =>
      [...exact].toSorted().flatMap((id) => {
        const [target] = targets(id);
        return target === undefined ? [] : [listed(id, target, startedAt)];
      }),
    isOn: (channel) => !off.has(channel),
    switchOff: (wanted) => {
      off = new Set(wanted);
    },
  };
}

function candidate(channel: Channel, model: string): Candidate | undefined {
  const upstreamModel = channel.upstreamModel(model);
  if (upstreamModel === undefined) return undefined;
  const rank = (channel.models.includes(model) ? 1e9 : 0) + channel.priority;
  const traits = channel.traits(upstreamModel);
  return {
    channel,
    rank,
    targets: channel.keys.map((key) => ({ channel, key, model: upstreamModel, traits })),
  };
}

/** What the gateway does by itself for any channel that chats: tokens can be counted, and histories summarised, here. */
const overChat: ReadonlySet<Operation> = new Set(['count-tokens', 'compact']);

function canDo({ speaks }: Channel, operation: Operation): boolean {
  return speaks[operation] !== undefined || (overChat.has(operation) && speaks.chat !== undefined);
}

function listed(id: string, { channel, traits }: Target, created: number): ListedModel {
  return {
    id,
    created,
    ownedBy: channel.id,
    ...(traits.inputLimit === undefined ? {} : { inputLimit: traits.inputLimit }),
    ...(traits.outputLimit === undefined ? {} : { outputLimit: traits.outputLimit }),
    ...(traits.reasoning === undefined ? {} : { thinking: traits.reasoning !== 'none' }),
  };
}
