/** Which channels serve which models, and how they stand, as plugins see it. */
import type { ListedModel } from '../../model/event.ts';
import type { Operation } from '../format.ts';
import type { Target } from './call.ts';

/**
 * A channel that serves a model, with all its keys.
 *
 * @example
 * const [first] = catalog.candidates('gpt-5-mini', 'chat');
 * const targets = first?.targets ?? [];
 */
export interface Candidate {
  readonly channel: Target['channel'] & {
    /** Share of the calls among channels of one rank. */
    readonly weight: number;
    /** Members of bodies by which the provider itself chooses models, in the spelling of `foldName`. */
    readonly routingFields?: ReadonlySet<string>;
  };
  /** Channels of equal rank share the calls. Those of a lower rank are tried when all of a higher rank have failed. */
  readonly rank: number;
  /** One for each key of the channel, at least one. */
  readonly targets: readonly Target[];
}

/**
 * Which channel serves which model.
 *
 * @example
 * const model = catalog.serves(requested) ? requested : 'demo';
 */
export interface Catalog {
  /** All channels in the order of the config. */
  readonly channels: readonly Target['channel'][];
  /** Returns true when some channel serves this public name (exact, mapped, or by pattern). */
  serves(model: string): boolean;
  /** Returns true when a channel names the model exactly, or it is known to stand behind a pattern. */
  isKnown(model: string): boolean;
  /** Returns true for the name of a model in the list of known models, in any letter case and behind any path. */
  isInModelList(model: string): boolean;
  /** Returns the targets of a model, best first, each channel with its first key. */
  targets(model: string): readonly Target[];
  /** Returns the channels of a model with all their keys, the highest rank first. With an operation, returns only channels that support it. */
  candidates(model: string, operation?: Operation): readonly Candidate[];
  /** Every model that is known to be one that can be called now, sorted. */
  list(): readonly ListedModel[];
  /** Returns false for a channel that an administrator has switched off. */
  isOn(channel: string): boolean;
}

/**
 * Health of targets, as their circuit breakers and the limits that providers tell have it.
 *
 * @example
 * const up = targets.filter((target) => tools.health.waitMs(target) === 0);
 */
export interface Health {
  /** Milliseconds until a call may go to the target; 0 when one may now. */
  waitMs(target: Target): number;
}
