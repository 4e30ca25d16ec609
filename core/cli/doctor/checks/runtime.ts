/** Looks at the version of Node. */
import { findingsOf, type Check, type Finding } from '../finding.ts';

const { ok, warning } = findingsOf('runtime');

/** Node's versions with long support, and when that ends. https://nodejs.org/en/about/previous-releases, November 2026. */
const supportedUntil: Readonly<Record<number, string>> = {
  22: '2027-04-30',
  24: '2028-04-30',
  26: '2029-04-30',
};

/** The version of Node. */
export const runtime: Check = {
  name: 'runtime',
  look: ({ now }) => [nodeFinding(process.versions.node, now())],
};

/** Judges a version of Node at a time. */
export function nodeFinding(version: string, now: number): Finding {
  const until = supportedUntil[Number.parseInt(version, 10)];
  const fix = 'Run a version of Node with long support, such as 24.';
  if (until === undefined) return warning(`Node ${version} has no long support.`, fix);
  return Date.parse(until) < now
    ? warning(`Node ${version} gets no corrections since ${until}.`, fix)
    : ok(`Node ${version} gets corrections until ${until}.`);
}
