import type { DatabaseFacts } from '../../../state/database/inspect.ts';
import { findingsOf, type Finding } from '../finding.ts';

/** Clock differences in milliseconds above which the budgets and windows of gateways disagree. */
const limits = { warning: 1_000, error: 10_000 };

/** Compares the clock of a server with that of this machine. Subtracts half of the round trip, because that much of the difference may be network delay. */
export function clockFindings(
  server: string,
  { at, localAt, roundTrip }: NonNullable<DatabaseFacts['clock']>,
): readonly Finding[] {
  const { ok, warning, error } = findingsOf('clock');
  const difference = Math.round(localAt - roundTrip / 2 - at);
  const certain = Math.abs(difference) - roundTrip / 2;
  const ahead = difference > 0 ? 'ahead of' : 'behind';
  const message = `The clock of this machine is ${Math.abs(difference)} ms ${ahead} that of ${server}.`;
  const fix = 'Synchronize the clocks of both machines, for example with chrony or systemd-timesyncd.';
  if (certain > limits.error) return [error(message, fix)];
  if (certain > limits.warning) return [warning(message, fix)];
  return [ok(`The clock agrees with that of ${server}.`)];
}
