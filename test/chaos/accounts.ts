import type { Outcome } from './oracles.ts';
import type { Books, Probe } from './gateway-process.ts';
import { reportedUsage } from './dialects.ts';

/** A call that was made, and how it came out. */
export interface Made {
  readonly name: string;
  readonly id: string | undefined;
  readonly status: number;
  readonly outcome: Outcome;
}

/** Micro-dollars for each token. */
const price = { input: 10, output: 20 };
const ordinary = reportedUsage.input * price.input + reportedUsage.output * price.output;

/** Returns the errors of the charges: each call must have one record that matches what its client saw, and spending must be the sum of the records. */
export function audit(made: readonly Made[], { keys, records }: Books): string[] {
  const problems: string[] = [];
  for (const { id, spent, reserved } of keys) {
    const sum = records
      .filter(({ keyId }) => keyId === id)
      .reduce((all, { microDollars = 0 }) => all + microDollars, 0);
    if (sum !== spent) problems.push(`key ${id}: ${spent} spent, records of ${sum}`);
    if (reserved !== 0) problems.push(`key ${id}: ${reserved} are still reserved`);
  }
  const nameless = made.filter(({ id }) => id === undefined).length;
  if (records.length > made.length || records.length < made.length - nameless)
    problems.push(`${made.length} calls, ${nameless} of them without an answer, ${records.length} records`);
  for (const { id, input, output, microDollars = 0 } of records) {
    if (microDollars !== input * price.input + output * price.output)
      problems.push(`record ${id}: ${input} + ${output} tokens for ${microDollars}`);
  }
  const known = new Map(records.map((record) => [record.id, record]));
  for (const { name, id, status, outcome } of made) {
    if (id === undefined) continue;
    const record = known.get(id);
    if (record === undefined) {
      problems.push(`${name}: has no record`);
      continue;
    }
    const { microDollars = 0, ended } = record;
    const recorded = `${name}: recorded as ${ended} with ${record.status} for ${microDollars}`;
    switch (outcome) {
      case 'complete':
        if (ended !== 'complete' || record.status !== status || microDollars !== ordinary)
          problems.push(`${recorded}; it was complete and costs ${ordinary}`);
        break;
      case 'refused':
        if (ended !== 'error' || record.status !== status || microDollars !== 0)
          problems.push(`${recorded}; it was refused with ${status}`);
        break;
      case 'broken':
      case 'severed':
        if (ended !== 'interrupted' || record.status !== status)
          problems.push(`${recorded}; it broke in the middle`);
        break;
      default:
    }
  }
  return problems;
}

/** Bytes of memory that may be held beyond what was held after the warm-up. */
const room = { heap: 16 * 1024 * 1024, rss: 0.25 };
/** Timers that a gateway may have now and not then. */
const timers = 3;

/** Returns the resources that are still held after all calls. `before` is after the warm-up. */
export function leftOver(
  before: Probe,
  after: Probe,
  rest: { readonly running: number; readonly connections: number; readonly temporary: readonly string[] },
): string[] {
  const problems: string[] = [];
  const { running, connections, temporary } = rest;
  if (running > 0) problems.push(`the provider still answers ${running} requests`);
  if (connections > 0) problems.push(`${connections} connections to the provider are still open`);
  if (after.reservations > 0) problems.push(`${after.reservations} claims are left in the ledger`);
  if (after.unsettled > 0) problems.push(`${after.unsettled} calls wait to be charged`);
  for (const kind of Object.keys(after.handles)) {
    const most = (before.handles[kind] ?? 0) + (kind === 'Timeout' ? timers : 0);
    if ((after.handles[kind] ?? 0) > most)
      problems.push(
        `${after.handles[kind]} handles of ${kind}, ${before.handles[kind] ?? 0} after the warm-up`,
      );
  }
  if (after.heap > before.heap + room.heap)
    problems.push(`the heap grew from ${mebibytes(before.heap)} to ${mebibytes(after.heap)}`);
  if (after.rss > before.rss * (1 + room.rss))
    problems.push(`the memory grew from ${mebibytes(before.rss)} to ${mebibytes(after.rss)}`);
  if (temporary.length > 0) problems.push(`temporary files are left: ${temporary.join(', ')}`);
  for (const line of after.errors) problems.push(`the log tells of a failure of its own: ${line}`);
  return problems;
}

/** Bytes for a person. */
export function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
