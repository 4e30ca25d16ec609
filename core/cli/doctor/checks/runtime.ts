/** Checks the version of Node. */
import { findingsOf, type Check, type Finding } from '../finding.ts';

const { ok, warning } = findingsOf('runtime');

/** Long-term support versions of Node with the end of their support. https://nodejs.org/en/about/previous-releases, November 2026. */
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

/** Returns the finding for a version of Node. `now` is in milliseconds since 1970. */
export function nodeFinding(version: string, now: number): Finding {
  const until = supportedUntil[Number.parseInt(version, 10)];
  const fix = 'Install a version of Node with long-term support, such as 24.';
  if (until === undefined) return warning(`Node ${version} has no long-term support.`, fix);
  return Date.parse(until) < now
    ? warning(`The support for Node ${version} ended on ${until}.`, fix)
    : ok(`Node ${version} is supported until ${until}.`);
}
