/** Runs scenarios against targets in turn, so that a slow minute of the machine hits all of them alike. */
import type { Measured, Scenario } from './scenarios.ts';
import type { Stage } from './stage.ts';
import type { Target } from './targets.ts';

/** What one round of a scenario gave, by the name of the target. */
export type Round = Readonly<Record<string, Measured>>;

/** The rounds of each scenario, by its name. */
export type Rounds = ReadonlyMap<string, readonly Round[]>;

/** How long all of it takes, in seconds for each scenario and target. */
export interface Pace {
  /**
   * Before the first round, for each worker, because they share the calls: a server runs for days, and V8 compiles for some thousand calls
   * until it has seen enough of one.
   */
  readonly warm: number;
  readonly rounds: number;
  readonly seconds: number;
}

/** Runs them, and tells what was wrong with replies. */
export class Runner {
  readonly #stage: Stage;
  readonly #targets: readonly Target[];
  readonly failures = new Set<string>();

  constructor(stage: Stage, targets: readonly Target[]) {
    this.#stage = stage;
    this.#targets = targets;
  }

  /** Short rounds: in each, all scenarios in their order, so that each target has to do with all of them, as a gateway has. */
  async interleaved(scenarios: readonly Scenario[], { warm, rounds, seconds }: Pace): Promise<Rounds> {
    if (warm > 0) for (const scenario of scenarios) await this.#round(scenario, warm, 0);
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

  /** Every target once. Who goes first changes. */
  async #round(scenario: Scenario, seconds: number, number: number, before = 0): Promise<Round> {
    const measured: Record<string, Measured> = {};
    for (const target of number % 2 === 0 ? this.#targets : this.#targets.toReversed()) {
      if (before > 0) await scenario.run(this.#stage, target, before);
      const one = await scenario.run(this.#stage, target, seconds);
      for (const failure of one.failures.slice(0, 3))
        this.failures.add(`${scenario.name}, ${target.name}: ${failure}`);
      measured[target.name] = one;
    }
    process.stderr.write('.');
    return measured;
  }
}
