/** Compares what keys and their owners have spent with the sums of the usage log, as the admin API tells both. */
import { setTimeout as pause } from 'node:timers/promises';

type Json = Readonly<Record<string, unknown>>;

/** Asks the admin API of a gateway. */
export type Ask = (path: string) => Promise<Json>;

interface Budgeted {
  readonly id: string;
  readonly name: string;
  readonly budgets: readonly { readonly unit: string; readonly spent: number; readonly reserved: number }[];
}

interface Sum {
  readonly group: string;
  readonly calls: number;
  readonly microDollars: number;
}

/** A key as a run has used it: its calls that were answered, and the owners that pay with it. */
export interface UsedKey {
  readonly id: string;
  readonly calls: number;
  readonly owners: readonly string[];
}

/** Amounts of all keys together, in micro-dollars. */
export interface Compared {
  readonly calls: number;
  readonly spent: number;
  readonly problems: readonly string[];
}

/** How often it is looked again until all calls are recorded, and the milliseconds between. */
const looks = 20;
const between = 500;

/** Compares once everything is written, or tells what is wrong at last. */
export async function compareSums(ask: Ask, keys: readonly UsedKey[]): Promise<Compared> {
  let compared = await look(ask, keys);
  for (let count = 0; count < looks && compared.problems.length > 0; count += 1) {
    // oxlint-disable-next-line no-await-in-loop -- looked again until it is written
    await pause(between);
    // oxlint-disable-next-line no-await-in-loop -- as above
    compared = await look(ask, keys);
  }
  return compared;
}

async function look(ask: Ask, used: readonly UsedKey[]): Promise<Compared> {
  const { sums } = (await ask('usage/sums?by=keyId')) as unknown as { readonly sums: readonly Sum[] };
  const problems: string[] = [];
  const ofOwners = new Map<string, number>();
  let [calls, spent] = [0, 0];
  for (const key of used) {
    const sum = sums.find(({ group }) => group === key.id);
    const view = (await ask(`keys/${key.id}`)) as unknown as Budgeted;
    const recorded = sum?.microDollars ?? 0;
    problems.push(...wrongBudgets(view, recorded));
    if ((sum?.calls ?? 0) !== key.calls)
      problems.push(
        `key ${view.name}: ${key.calls} calls were answered, and ${sum?.calls ?? 0} are recorded`,
      );
    for (const owner of key.owners) ofOwners.set(owner, (ofOwners.get(owner) ?? 0) + recorded);
    calls += sum?.calls ?? 0;
    spent += recorded;
  }
  for (const [id, recorded] of ofOwners)
    problems.push(...wrongBudgets((await ask(`owners/${id}`)) as unknown as Budgeted, recorded));
  return { calls, spent, problems };
}

function wrongBudgets({ name, budgets }: Budgeted, recorded: number): string[] {
  return budgets.flatMap(({ unit, spent, reserved }) => {
    const problems: string[] = [];
    if (unit === 'micro-dollar' && spent !== recorded)
      problems.push(`${name}: ${spent} spent, and records of ${recorded}`);
    if (reserved !== 0) problems.push(`${name}: ${reserved} are still reserved`);
    return problems;
  });
}
