/** Orders the targets of one call by affinity, rank, health, weight, load and response time. */
import type { Affinity } from '../sdk/affinity.ts';
import type { Target } from '../sdk/call.ts';
import type { ChannelLoad, TargetLoads } from './load.ts';
import type { Candidate } from './catalog.ts';
import type { Health } from '../sdk/health.ts';
import type { RoutingSettings } from '../settings/routing.ts';

/** Services and settings for a choice. */
export interface TargetSelectorOptions {
  readonly health: Pick<Health, 'waitMs'>;
  readonly load: TargetLoads;
  readonly how: RoutingSettings['choice'];
  /** From 0 to below 1. Default `Math.random`. */
  readonly random?: () => number;
  /** `performance.now()`. */
  readonly now?: () => number;
}

/** Scope of a failure: the targets that share it. */
export type FailureScope =
  /** Only this target: its key, or the rate limit of the key. */
  | 'key'
  /** The channel, or one of its sites. Its other keys are tried when no other target is left. */
  | 'channel';

/**
 * Selects the targets of one call in order, each at most once. Targets of an affinity come first. Among the others the highest rank comes
 * first, and within a rank the order of `how` in the settings. Skips targets with an open circuit breaker, even if a lower rank must be used.
 * A channel that failed as a whole comes last. The sites of a channel are used in their order: after a failure at one site the next site follows.
 */
export class TargetSelector {
  readonly #candidates: readonly Candidate[];
  readonly #affinity: Affinity | undefined;
  readonly #options: TargetSelectorOptions;
  #tried: Target[] | undefined;
  /** One target of each site that failed. */
  #failed: Target[] | undefined;
  #beside: readonly Target[] = none;
  /** Channel whose other keys are tried next, because only its last key was at fault. */
  #mates: string | undefined;

  /** `candidates` come highest rank first. An affinity with `only` must name one of them. */
  constructor(
    candidates: readonly Candidate[],
    affinity: Affinity | undefined,
    options: TargetSelectorOptions,
  ) {
    this.#candidates = affinity?.only === true ? onlyOf(candidates, affinity) : candidates;
    this.#affinity = affinity;
    this.#options = options;
  }

  /**
   * Returns the next available target and marks it as tried; undefined when there is none. `beside`: targets with running attempts. Other
   * channels come before theirs, because another key of a slow provider is slow as well.
   */
  next(beside: readonly Target[] = none): Target | undefined {
    this.#beside = beside;
    const target = this.#preferred() ?? this.#ranked(false) ?? this.#ranked(true);
    this.#mates = undefined;
    if (target !== undefined) (this.#tried ??= []).push(target);
    return target;
  }

  /** Returns the targets that were not tried. When `next` returns undefined, these are the ones with open circuit breakers. */
  left(): readonly Target[] {
    return this.#candidates.flatMap(({ targets }) => targets.filter((target) => !this.#wasTried(target)));
  }

  /** Marks one of the remaining targets as tried, whatever its health. */
  take(target: Target): void {
    (this.#tried ??= []).push(target);
  }

  /** Unmarks a target that was not called after all. */
  putBack(target: Target): void {
    const index = this.#tried?.indexOf(target) ?? -1;
    if (index >= 0) this.#tried?.splice(index, 1);
  }

  /** Records a failed attempt. `prefersMates`: another key of the same channel is tried next. */
  failed(target: Target, what: FailureScope, prefersMates = false): void {
    const { channel, key } = target;
    if (what === 'channel') (this.#failed ??= []).push(target);
    if (key.site !== undefined || (prefersMates && what === 'key')) this.#mates = channel.id;
  }

  #wasTried(target: Target): boolean {
    return this.#tried?.includes(target) === true;
  }

  #canTry(target: Target): boolean {
    return !this.#wasTried(target) && this.#options.health.waitMs(target) <= 0;
  }

  /** Returns the target that the affinity names: by its key where that is known, else any of its channel. */
  #preferred(): Target | undefined {
    const affinity = this.#affinity;
    if (affinity === undefined || affinity.only === true) return undefined;
    const candidate = this.#candidates.find(({ channel }) => channel.id === affinity.channel);
    if (candidate === undefined) return undefined;
    const named = candidate.targets.find(({ key }) => key.id === affinity.key);
    if (named !== undefined) return this.#canTry(named) && !this.#isLast(named) ? named : undefined;
    const eligible = candidate.targets.filter((target) => this.#canTry(target) && !this.#isLast(target));
    return eligible.length === 0 ? undefined : this.#leastBusy(foremost(eligible), this.#loadOf(candidate));
  }

  /** Returns true for a target that is only tried when no other target is left. */
  #isLast(target: Target): boolean {
    const isThere = (other: Target): boolean => areTogether(target, other);
    return this.#failed?.some(isThere) === true || this.#beside.some(isThere);
  }

  /** Returns the best target of the channels that come first, or with `last` of those that failed or have a running attempt. */
  #ranked(last: boolean): Target | undefined {
    const candidates = this.#candidates;
    const [only] = candidates;
    if (only !== undefined && candidates.length === 1 && only.targets.length === 1)
      return this.#alone(only, last);
    const drawn = last ? undefined : this.#drawnOfMany();
    if (drawn !== undefined) return drawn;
    for (let start = 0; start < candidates.length;) {
      const rank = candidates[start]?.rank;
      let end = start;
      const eligible: EligibleChannel[] = [];
      for (; candidates[end]?.rank === rank && end < candidates.length; end += 1) {
        const candidate = candidates[end];
        if (candidate === undefined) continue;
        const isEligible = (target: Target): boolean => this.#isLast(target) === last && this.#canTry(target);
        const targets = candidate.targets.every(isEligible)
          ? candidate.targets
          : candidate.targets.filter(isEligible);
        if (targets.length > 0) eligible.push({ candidate, targets: foremost(targets) });
      }
      const [first] = eligible;
      if (first !== undefined) {
        const mates = eligible.find(({ candidate }) => candidate.channel.id === this.#mates);
        return mates === undefined && eligible.length > 1
          ? this.#among(eligible)
          : this.#keyOf(mates ?? first);
      }
      start = end;
    }
    return undefined;
  }

  /**
   * Draws one of many channels by weight, or one of many keys, for the first attempt of a call. Repeats a draw of an ineligible channel, which
   * is as fair as a draw among the eligible ones and examines few of them. Returns undefined where all must be examined.
   */
  #drawnOfMany(): Target | undefined {
    const isFirst = this.#tried === undefined && this.#failed === undefined && this.#beside.length === 0;
    if (this.#options.how !== 'weight' || !isFirst) return undefined;
    const candidates = this.#candidates;
    const haveManyKeys = (candidates[0]?.targets.length ?? 0) >= many;
    if (candidates.length < many && !haveManyKeys) return undefined;
    const sums = weightSums(candidates);
    if (sums.length < many && !haveManyKeys) return undefined;
    for (let draw = 0; draw < mostDraws; draw += 1) {
      const drawn = (this.#options.random ?? Math.random)();
      const candidate = candidates[indexIn(sums, drawn)];
      const target = candidate && this.#firstKeyOf(candidate);
      if (target !== undefined) return target;
    }
    return undefined;
  }

  /** Returns an eligible key of a channel. Examines few of many keys without sites, as long as some of them are idle. */
  #firstKeyOf(candidate: Candidate): Target | undefined {
    const { targets } = candidate;
    const load = this.#loadOf(candidate);
    if (targets.length >= many && targets[0]?.key.site === undefined) {
      let index = load.nextStart() % targets.length;
      for (let draw = 0; draw < mostDraws; draw += 1) {
        const target = targets[index];
        if (target !== undefined && load.key(target.key.id).running === 0 && this.#canTry(target))
          return target;
        // A random key, because the next one in order would get the calls of all unavailable keys before it.
        index = Math.floor((this.#options.random ?? Math.random)() * targets.length);
      }
    }
    const eligible = targets.filter((target) => this.#canTry(target));
    return eligible.length === 0 ? undefined : this.#keyOf({ candidate, targets: foremost(eligible) });
  }

  /** Returns the only target of a model where it is eligible. Most models have one target, so nothing is compared. */
  #alone({ targets: [target] }: Candidate, last: boolean): Target | undefined {
    return target !== undefined && this.#isLast(target) === last && this.#canTry(target) ? target : undefined;
  }

  #among(eligible: readonly EligibleChannel[]): Target | undefined {
    switch (this.#options.how) {
      case 'weight':
        return this.#keyOf(this.#drawn(eligible));
      case 'least-busy':
        return this.#keyOf(this.#drawn(this.#leastBusyOf(eligible)));
      case 'fastest':
        return this.#fastest(eligible.flatMap((one) => one.targets.map((target) => ({ ...one, target }))));
    }
  }

  /** Returns one key of a channel: the least busy, or the faster of two. */
  #keyOf(eligible: EligibleChannel | undefined): Target | undefined {
    if (eligible === undefined) return undefined;
    const { targets, candidate } = eligible;
    if (targets.length === 1) return targets[0];
    if (this.#options.how === 'fastest')
      return this.#fastest(targets.map((target) => ({ ...eligible, target })));
    return this.#leastBusy(targets, this.#loadOf(candidate));
  }

  #loadOf({ channel }: Candidate): ChannelLoad {
    return this.#options.load.channel(channel.id);
  }

  /** Returns the key with the fewest running attempts; equal ones in rotation. */
  #leastBusy(targets: readonly Target[], load: ChannelLoad): Target | undefined {
    const start = load.nextStart();
    let best: Target | undefined;
    let fewest = Infinity;
    for (let step = 0; step < targets.length; step += 1) {
      const target = targets[(start + step) % targets.length];
      if (target === undefined) continue;
      const { running } = load.key(target.key.id);
      if (running < fewest) {
        best = target;
        fewest = running;
      }
    }
    return best;
  }

  #leastBusyOf(eligible: readonly EligibleChannel[]): readonly EligibleChannel[] {
    const busy = (one: EligibleChannel): number => this.#loadOf(one.candidate).running / weightOf(one);
    const fewest = eligible.reduce((least, one) => Math.min(least, busy(one)), Infinity);
    return eligible.filter((one) => busy(one) === fewest);
  }

  /** Draws one of several by weight. */
  #drawn<One extends EligibleChannel>(eligible: readonly One[]): One | undefined {
    if (eligible.length <= 1) return eligible[0];
    let sum = 0;
    for (const one of eligible) sum += weightOf(one);
    let drawn = (this.#options.random ?? Math.random)() * sum;
    for (const one of eligible) {
      drawn -= weightOf(one);
      if (drawn < 0) return one;
    }
    return eligible.at(-1);
  }

  /**
   * Draws two by weight and returns the one with the lower expected time to the first token, multiplied by its running calls. Does not
   * take the fastest of all, because every call would go there.
   */
  #fastest(eligible: readonly EligibleKey[]): Target | undefined {
    const one = this.#drawn(eligible);
    const other = this.#drawn(eligible.filter((each) => each !== one));
    if (one === undefined || other === undefined) return one?.target;
    const now = (this.#options.now ?? (() => performance.now()))();
    const [oneLoad, otherLoad] = [this.#options.load.of(one.target), this.#options.load.of(other.target)];
    const oneTime = oneLoad.firstToken(one.target.model, now);
    const otherTime = otherLoad.firstToken(other.target.model, now);
    // A target without measurements counts as fast as the other, so that it gets calls and is measured.
    const oneCost = (oneTime ?? otherTime ?? 1) * (oneLoad.running + 1);
    const otherCost = (otherTime ?? oneTime ?? 1) * (otherLoad.running + 1);
    return otherCost < oneCost ? other.target : one.target;
  }
}

const none: readonly Target[] = [];

/** Minimum number of channels of one rank for which only drawn channels are examined. */
const many = 16;
const mostDraws = 4;

/** Cumulative weights of the candidates of the highest rank, cached by list, because the catalog reuses lists. */
const sumsOf = new WeakMap<readonly Candidate[], Float64Array>();

function weightSums(candidates: readonly Candidate[]): Float64Array {
  let sums = sumsOf.get(candidates);
  if (sums === undefined) {
    const rank = candidates[0]?.rank;
    let sum = 0;
    sums = Float64Array.from(
      candidates
        .filter((candidate) => candidate.rank === rank)
        .map((candidate) => (sum += weightOf({ candidate, targets: candidate.targets }))),
    );
    sumsOf.set(candidates, sums);
  }
  return sums;
}

/** Returns the index on which a number from 0 to below 1 falls. */
function indexIn(sums: Float64Array, drawn: number): number {
  const wanted = drawn * (sums.at(-1) ?? 0);
  let low = 0;
  let high = sums.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle] ?? 0) > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A channel with its eligible targets. */
interface EligibleChannel {
  readonly candidate: Candidate;
  readonly targets: readonly Target[];
}

interface EligibleKey extends EligibleChannel {
  readonly target: Target;
}

/** Returns true for targets that fail together: those of one channel at the same site. */
function areTogether(one: Target, other: Target): boolean {
  return one.channel.id === other.channel.id && one.key.site === other.key.site;
}

/** Returns a channel's targets at its first site; all where it has no sites. */
function foremost(targets: readonly Target[]): readonly Target[] {
  if (targets[0]?.key.site === undefined) return targets;
  const first = targets.reduce((least, { key }) => Math.min(least, key.site ?? 0), Infinity);
  return targets.filter(({ key }) => key.site === first);
}

/** Returns the weight of a channel, or the share of it of a key. */
function weightOf(eligible: EligibleChannel | EligibleKey): number {
  const { weight } = eligible.candidate.channel;
  return Math.max('target' in eligible ? weight / eligible.targets.length : weight, 1e-9);
}

/** Returns the targets that an affinity allows. A key that is missing was replaced by another of the same account. */
function onlyOf(
  candidates: readonly Candidate[],
  { channel: id, key: keyId }: Affinity,
): readonly Candidate[] {
  const candidate = candidates.find(({ channel }) => channel.id === id);
  if (candidate === undefined) return [];
  const named = candidate.targets.filter(({ key }) => key.id === keyId);
  return [named.length === 0 ? candidate : { ...candidate, targets: named }];
}
