/** Changes of the run-time part in memory, and their limits. */
import { GatewayError } from '../../sdk/errors.ts';
import {
  runtimeLimits,
  type RuntimeChange,
  type RuntimeEntry,
  type RuntimeSnapshot,
} from '../../state/runtime-config/index.ts';

/** Number of times that a change is tried anew because another gateway was faster. */
export const maxTries = 5;

/** Returns the run-time part as it is after a change. */
export function nextSnapshot(
  { revision, entries, order, bytes }: RuntimeSnapshot,
  change: Pick<RuntimeChange, 'changes' | 'order'>,
): RuntimeSnapshot {
  const changed = new Set(change.changes.map(({ kind, name }) => `${kind}:${name}`));
  const isChanged = ({ kind, name }: RuntimeEntry): boolean => changed.has(`${kind}:${name}`);
  const kept = entries.filter((entry) => !isChanged(entry));
  const added = change.changes.flatMap(({ after }) => (after === undefined ? [] : [after]));
  const sizes = (some: readonly RuntimeEntry[]): number =>
    some.reduce((sum, { value }) => sum + sizeOf(value), 0);
  return {
    revision: revision + 1,
    entries: [...kept, ...added],
    order: change.order?.after ?? order,
    bytes: bytes - sizes(entries.filter(isChanged)) + sizes(added),
  };
}

/** Throws 400 for a change that makes the run-time part too large. */
export function checkBounds(next: RuntimeSnapshot, { changes }: Pick<RuntimeChange, 'changes'>): void {
  const { entries, channels, entryBytes, bytes } = runtimeLimits;
  const tooMuch = (sentence: string): never => {
    throw new GatewayError('invalid_value', sentence);
  };
  const adds = changes.some(({ before, after }) => before === undefined && after !== undefined);
  if (adds && next.entries.length > entries) tooMuch(`The limit of ${entries} run-time entries is reached.`);
  if (adds && next.entries.filter(({ kind }) => kind === 'channel').length > channels)
    tooMuch(`The limit of ${channels} run-time channels is reached.`);
  for (const { after } of changes)
    if (after !== undefined && sizeOf(after.value) > entryBytes)
      tooMuch(`The entry is too large: at most ${entryBytes / 1024} KiB.`);
  if (next.bytes > bytes && changes.some(({ after }) => after !== undefined))
    tooMuch(`The run-time configuration is too large: at most ${bytes / 1024 / 1024} MiB together.`);
}

/** Returns true for values that are the same JSON. */
export function isSameValue(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}
