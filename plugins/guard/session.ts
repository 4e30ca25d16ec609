/** State that the checks of one call share, and the choice of the check that refuses or masks a finding. */
import type { Call } from 'sluice';
import { tells, type Check } from './checks.ts';
import type { Finding, Scanners } from './scanner.ts';
import type { Placeholders } from './placeholders.ts';
import type { Reporter } from './reporter.ts';
import type { BackgroundChecks } from './background-checks.ts';

/** State that the checks of one call share. */
export interface Session {
  readonly call: Call;
  readonly scanners: Scanners;
  readonly reporter: Reporter;
  readonly beside: BackgroundChecks;
  readonly placeholders: Placeholders;
  /** Labels of all placeholders that may be restored. */
  readonly labels: readonly string[];
}

/** Divides the checks that have patterns into those that change or refuse a call, and those that only report. */
export function divide(checks: readonly Check[]): {
  readonly acting: readonly Check[];
  readonly telling: readonly Check[];
} {
  const local = checks.filter((check) => check.patterns.length > 0);
  return { acting: local.filter((check) => !tells(check)), telling: local.filter(tells) };
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
