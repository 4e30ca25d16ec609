/** Runs scenarios against targets in turn, so that a slow minute of the machine hits all of them alike. */
import type { Measured, Scenario } from './scenarios.ts';
import type { Stage } from './stage.ts';
import type { Target } from './targets.ts';

/** Results of one round of a scenario by target. */
export type Round = Readonly<Record<string, Measured>>;

/** The rounds of each scenario, by its name. */
export type Rounds = ReadonlyMap<string, readonly Round[]>;

/** Durations in seconds for each scenario and target. */
export interface Pace {
  /**
   * Before the first round, at most, for each worker, because they share the calls. A server runs for days, and V8 compiles for up to 15,000 calls
   * until it has seen enough of one: a small call with limits takes 600 microseconds among the first 3,000, and 250 after 15,000 (November 2026).
   */
  readonly warm: number;
  readonly rounds: number;
  readonly seconds: number;
}

/** Length of a batch of the warm-up, in seconds. */
const batch = 1;

/** A warm-up ends after so many batches in a row that are not cheaper by 3 % than the cheapest before. */
const unimprovedBatches = 4;

/**
 * Minimum number of calls or chunks of both warm-ups of a scenario and target, where the time suffices. On a busy machine a batch may cost as much
 * as the one before while V8 still compiles: five batches of 450 calls would end a warm-up.
 */
const leastCalls = 6_000;

/** Runs them, and tells what was wrong with replies. */
export class Runner {
  readonly #stage: Stage;
  readonly #targets: readonly Target[];
  readonly failures = new Set<string>();
  /** Number of calls or chunks of each warm-up. */
  readonly warmUps: number[] = [];

  constructor(stage: Stage, targets: readonly Target[]) {
    this.#stage = stage;
    this.#targets = targets;
  }

  /** Short rounds: in each, all scenarios in their order, so that each target has to do with all of them, as a gateway has. */
  async interleaved(scenarios: readonly Scenario[], { warm, rounds, seconds }: Pace): Promise<Rounds> {
    // Twice, because what V8 has compiled for one scenario may not do for the next.
    for (const share of [2 / 3, 1 / 3])
      for (const scenario of scenarios)
        for (const target of this.#targets) await this.#warmUp(scenario, target, warm, share);
    const done = new Map<string, Round[]>(scenarios.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round += 1)
      for (const scenario of scenarios)
        done.get(scenario.name)?.push(await this.#round(scenario, seconds, round));
    return done;
  }

  /** Long rounds of one scenario after the other: each target does nothing else for as long. */
  async steady(scenarios: readonly Scenario[], seconds: number, rounds = 2): Promise<Rounds> {
    const done = new Map<string, Round[]>();
    for (const scenario of scenarios) {
      const own: Round[] = [];
      for (let round = 0; round < rounds; round += 1)
        own.push(await this.#round(scenario, seconds, round, seconds / 4));
      done.set(scenario.name, own);
    }
    return done;
  }

  /** Runs a scenario until a share of the least calls is made and they cost no less than before, at most for that share of the seconds. */
  async #warmUp(scenario: Scenario, target: Target, mostSeconds: number, share: number): Promise<void> {
    const most = mostSeconds * share;
    let least = Number.POSITIVE_INFINITY;
    let calls = 0;
    let unimproved = 0;
    const isWarm = (): boolean => unimproved >= unimprovedBatches && calls >= leastCalls * share;
    for (let left = most; left > 0 && !isWarm(); left -= batch) {
      const seconds = Math.min(batch, left);
      const { cpu, perSecond, failures } = await scenario.run(this.#stage, target, seconds);
      this.#reportFailures(scenario, target, failures);
      calls += perSecond * seconds;
      unimproved = cpu > least * 0.97 ? unimproved + 1 : 0;
      least = Math.min(least, cpu);
    }
    if (most > 0) this.warmUps.push(Math.round(calls));
    process.stderr.write('.');
  }

  #reportFailures(scenario: Scenario, target: Target, failures: readonly string[]): void {
    for (const failure of failures.slice(0, 3))
      this.failures.add(`${scenario.name}, ${target.name}: ${failure}`);
  }

  /** Every target once. Who goes first changes. */
  async #round(scenario: Scenario, seconds: number, number: number, before = 0): Promise<Round> {
    const measured: Record<string, Measured> = {};
    for (const target of number % 2 === 0 ? this.#targets : this.#targets.toReversed()) {
      if (before > 0) await scenario.run(this.#stage, target, before);
      const one = await scenario.run(this.#stage, target, seconds);
      this.#reportFailures(scenario, target, one.failures);
      measured[target.name] = one;
    }
    process.stderr.write('.');
    return measured;
  }
}
