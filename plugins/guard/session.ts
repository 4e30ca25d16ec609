import type { Call } from 'sluice';
import type { Check, RemoteCheck } from './checks.ts';
import type { Finding, Scanners } from './scanner.ts';
import type { Placeholders } from './placeholders.ts';
import type { Reporter } from './reporter.ts';

/** What the checks of one call share. */
export interface Session {
  readonly call: Call;
  readonly scanners: Scanners;
  readonly reporter: Reporter;
  readonly placeholders: Placeholders;
  /** Labels of all placeholders that may be restored. */
  readonly labels: readonly string[];
}

/** A check that asks somebody. */
export type RemotelyChecked = Check & { readonly remote: RemoteCheck };

/** True for a check that asks somebody. */
export function isRemote(check: Check): check is RemotelyChecked {
  return check.remote !== undefined;
}

/** Checks that change or end a call, and those that only tell of it. */
export function divide(checks: readonly Check[]): {
  readonly acting: readonly Check[];
  readonly telling: readonly Check[];
} {
  const local = checks.filter((check) => check.patterns.length > 0);
  const acts = ({ action }: Check): boolean => action === 'refuse' || action === 'mask';
  return { acting: local.filter(acts), telling: local.filter((check) => !acts(check)) };
}

/** Throws where a finding belongs to a check that refuses; returns the check that masks it. */
export function masking(
  finding: Finding,
  side: 'request' | 'response',
  { call, reporter }: Session,
  at?: string,
): Check | undefined {
  const refusing = finding.checks.find(({ action }) => action === 'refuse');
  if (refusing !== undefined)
    throw reporter.refusal(call, { check: refusing, side, reasons: [finding.label], at });
  return finding.checks[0];
}
