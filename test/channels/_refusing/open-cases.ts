import { readFileSync, writeFileSync } from 'node:fs';
import type { Outcome } from './matrix.ts';

const file = new URL('open-cases.json', import.meta.url);

/** Cases that do not hold, by kind and model and by request: the clients for whom they do not. */
type Open = Record<string, Record<string, string[]>>;

/** A case that does not hold. */
export const isOpen = ({ result, wish }: Outcome): boolean => result !== 'accepted' || wish === 'lost';

const open = JSON.parse(readFileSync(file, 'utf8')) as Open;

const nameOf = ({ row: { kind, model } }: Outcome): string => `${kind} ${model}`;

/** True for a case that is known not to hold. */
export function isKnown(outcome: Outcome): boolean {
  return open[nameOf(outcome)]?.[outcome.request]?.includes(outcome.client) === true;
}

/** Cases that are listed and hold. */
export function heldOf(outcomes: readonly Outcome[]): readonly string[] {
  return outcomes
    .filter((one) => !isOpen(one) && isKnown(one))
    .map((one) => `${nameOf(one)} · ${one.request} · ${one.client}`);
}

/** Writes the list anew. */
export function writeOpen(outcomes: readonly Outcome[]): void {
  const found: Open = {};
  for (const outcome of outcomes.filter(isOpen))
    ((found[nameOf(outcome)] ??= {})[outcome.request] ??= []).push(outcome.client);
  writeFileSync(file, `${JSON.stringify(found, null, 1)}\n`);
}
