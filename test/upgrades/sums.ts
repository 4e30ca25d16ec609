/** Compares what keys and their owners have spent with the sums of the usage log, as the admin API tells both, and with what a provider has counted. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Bill } from './provider.ts';

type Json = Readonly<Record<string, unknown>>;

/** Asks the admin API of a gateway. */
export type FetchJson = (path: string) => Promise<Json>;

interface Budgeted {
  readonly id: string;
  readonly name: string;
  readonly budgets: readonly {
    readonly unit: 'micro-dollar' | 'token';
    readonly spent: number;
    readonly reserved: number;
  }[];
}

/** Sum of the calls of one key. */
export interface KeySum {
  readonly group: string;
  readonly calls: number;
  readonly input: number;
  readonly output: number;
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

/** Number of checks until all calls are recorded and leases of killed gateways have expired, and the milliseconds between them. */
const looks = 180;
const between = 500;

/** Compares once everything is written, or tells what is wrong at last. */
export async function compareSums(fetchJson: FetchJson, keys: readonly UsedKey[]): Promise<Compared> {
  let compared = await look(fetchJson, keys);
  for (let count = 0; count < looks && compared.problems.length > 0; count += 1) {
    // oxlint-disable-next-line no-await-in-loop -- looked again until it is written
    await pause(between);
    // oxlint-disable-next-line no-await-in-loop -- as above
    compared = await look(fetchJson, keys);
  }
  return compared;
}

async function look(fetchJson: FetchJson, used: readonly UsedKey[]): Promise<Compared> {
  const sums = await sumsByKey(fetchJson);
  const problems: string[] = [];
  const ofOwners = new Map<string, number>();
  let [calls, spent] = [0, 0];
  for (const key of used) {
    const sum = sums.find(({ group }) => group === key.id);
    const view = (await fetchJson(`keys/${key.id}`)) as unknown as Budgeted;
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
    problems.push(...wrongBudgets((await fetchJson(`owners/${id}`)) as unknown as Budgeted, recorded));
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

/** Returns the sums of all keys. */
export async function sumsByKey(fetchJson: FetchJson): Promise<readonly KeySum[]> {
  return ((await fetchJson('usage/sums?by=keyId')) as unknown as { readonly sums: readonly KeySum[] }).sums;
}

/** Adds sums of keys up. */
export function addUp(sums: readonly KeySum[]): Bill & { readonly microDollars: number } {
  const total = { calls: 0, input: 0, output: 0, microDollars: 0 };
  for (const sum of sums)
    for (const name of ['calls', 'input', 'output', 'microDollars'] as const) total[name] += sum[name];
  return total;
}

/** Returns how sums and budgets of keys differ from what their provider has counted, at a price of so many micro-dollars per token. */
export async function compareWithBill(
  fetchJson: FetchJson,
  keys: readonly string[],
  {
    bill,
    price,
  }: { readonly bill: Bill; readonly price: { readonly input: number; readonly output: number } },
): Promise<readonly string[]> {
  const sums = (await sumsByKey(fetchJson)).filter(({ group }) => keys.includes(group));
  const total = addUp(sums);
  const budgets = { 'micro-dollar': 0, token: 0 };
  for (const id of keys) {
    // oxlint-disable-next-line no-await-in-loop -- a handful
    const view = (await fetchJson(`keys/${id}`)) as unknown as Budgeted;
    for (const { unit, spent } of view.budgets) budgets[unit] += spent;
  }
  const cost = bill.input * price.input + bill.output * price.output;
  const pairs: readonly (readonly [string, number, number])[] = [
    ['calls recorded', total.calls, bill.calls],
    ['input tokens recorded', total.input, bill.input],
    ['output tokens recorded', total.output, bill.output],
    ['micro-dollars recorded', total.microDollars, cost],
    ['micro-dollars spent of budgets', budgets['micro-dollar'], cost],
    ['tokens spent of budgets', budgets.token, bill.input + bill.output],
  ];
  return pairs
    .filter(([, recorded, counted]) => recorded !== counted)
    .map(([what, recorded, counted]) => `${what}: ${recorded}, and ${counted} by the provider`);
}
