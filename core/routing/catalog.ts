import type { Channel } from '../channel.ts';
import type { Operation } from '../formats/format.ts';
import type { ListedModel } from '../model/event.ts';
import type { Target } from './target.ts';

/** Which channel serves which model. */
export interface Catalog {
  readonly channels: readonly Channel[];
  /** True when some channel serves this public name (exact, mapped, or by pattern). */
  serves(model: string): boolean;
  /** True when a channel names it exactly: such a name is never taken apart for suffixes. */
  names(model: string): boolean;
  /** The targets of a model, best first; all of them, also those that do not speak the operation. */
  targets(model: string): readonly Target[];
  /** Every model with an exact name, sorted. */
  list(): readonly ListedModel[];
}

/** Builds the catalog. The order of targets is: exact name before pattern, priority, then a draw by weight. */
export function createCatalog(channels: readonly Channel[], startedAt: number): Catalog {
  const exact = new Set<string>();
  for (const channel of channels) for (const name of channel.models) if (!name.includes('*')) exact.add(name);

  const targets = (model: string): Target[] => {
    const found: { target: Target; rank: number; draw: number }[] = [];
    for (const channel of channels) {
      const upstreamModel = channel.upstreamModel(model);
      if (upstreamModel === undefined) continue;
      const rank = (channel.models.includes(model) ? 1e9 : 0) + channel.priority;
      const draw = channels.length === 1 ? 0 : Math.random() ** (1 / Math.max(channel.weight, 1e-9));
      found.push({
        target: { channel, model: upstreamModel, traits: channel.traits(upstreamModel) },
        rank,
        draw,
      });
    }
    const ordered = found.length > 1 ? found.toSorted((a, b) => b.rank - a.rank || b.draw - a.draw) : found;
    return ordered.map(({ target }) => target);
  };

  return {
    channels,
    serves: (model) =>
      exact.has(model) || channels.some((channel) => channel.upstreamModel(model) !== undefined),
    names: (model) => exact.has(model),
    targets,
    list: () => [...exact].toSorted().map((id) => listed(id, targets(id)[0], startedAt)),
  };
}

function listed(id: string, target: Target | undefined, created: number): ListedModel {
  const traits = target?.traits ?? {};
  return {
    id,
    created,
    ownedBy: target?.channel.id ?? 'system',
    ...(traits.inputLimit === undefined ? {} : { inputLimit: traits.inputLimit }),
    ...(traits.outputLimit === undefined ? {} : { outputLimit: traits.outputLimit }),
    ...(traits.reasoning === undefined ? {} : { thinking: traits.reasoning !== 'none' }),
  };
}

/** The formats a channel speaks for an operation; undefined when it does not do that at all. */
export function formatsOf(channel: Channel, operation: Operation): readonly string[] | undefined {
  return channel.speaks[operation];
}
