import { readFileSync, writeFileSync } from 'node:fs';
import type { Outcome } from './matrix.ts';
import { rows, type Row } from './rows.ts';

const file = new URL('open-cases.json', import.meta.url);

/** Clients of a case that does not hold, and why that stays so. */
interface OpenCase {
  readonly clients: string[];
  readonly reason: string;
}

/** Cases that do not hold, by kind and model and by request. */
type Open = Record<string, Record<string, OpenCase>>;

/** Reason of a case that was found and that nobody has looked at yet. */
export const unexplained = 'unexplained';

/** A case that does not hold. */
export const isOpen = ({ result, effort }: Outcome): boolean => result !== 'accepted' || effort === 'lost';

const open = JSON.parse(readFileSync(file, 'utf8')) as Open;

const nameOf = ({ row: { kind, model } }: Pick<Outcome, 'row'>): string => `${kind} ${model}`;

/** True for a case that is known not to hold. */
export function isKnown(outcome: Outcome): boolean {
  return open[nameOf(outcome)]?.[outcome.request]?.clients.includes(outcome.client) === true;
}

/** Known cases without a reason. */
export function unexplainedCases(): readonly string[] {
  return Object.entries(open).flatMap(([name, requests]) =>
    Object.entries(requests)
      .filter(([, { reason }]) => reason === unexplained || !/\w+ \w+ \w+/.test(reason))
      .map(([request]) => `${name} · ${request}`),
  );
}

/** Known cases that hold by now. */
export function heldOf(outcomes: readonly Outcome[]): readonly string[] {
  return outcomes
    .filter((one) => !isOpen(one) && isKnown(one))
    .map((one) => `${nameOf(one)} · ${one.request} · ${one.client}`);
}

/** Writes the list anew. Reasons stay, and models that were not tried keep what is listed of them. */
export function writeOpen(outcomes: readonly Outcome[], tried: readonly Row[]): void {
  const found: Open = {};
  for (const row of rows) {
    const name = nameOf({ row });
    const kept = tried.includes(row) ? {} : open[name];
    if (kept !== undefined) found[name] = kept;
  }
  for (const outcome of outcomes.filter(isOpen)) {
    const [name, { request, client }] = [nameOf(outcome), outcome];
    const reason = open[name]?.[request]?.reason ?? unexplained;
    ((found[name] ??= {})[request] ??= { clients: [], reason }).clients.push(client);
  }
  for (const [name, cases] of Object.entries(found)) if (Object.keys(cases).length === 0) delete found[name];
  writeFileSync(file, `${JSON.stringify(found, null, 1)}\n`);
}
