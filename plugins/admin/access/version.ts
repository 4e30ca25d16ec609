/** Versions of editable things, which detect concurrent changes of two administrators. */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { GatewayError, type RouteContext } from 'sluice';

/** Returns the version of a thing: a text that changes with it. The order of members makes no difference. */
export function versionOf(thing: object): string {
  return hash('sha256', JSON.stringify(sorted(thing))).slice(0, 16);
}

/** Returns a copy with the members in order. A replacer of `JSON.stringify` would be called for each value, which takes several times as long. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}

const withVersion = z.object({ version: z.string() });
const versionedAnswer = z.union([withVersion, z.object({ key: withVersion }).transform(({ key }) => key)]);

/** Names the version of the thing that an answer shows in the header `etag`. */
export function setEtag(ctx: RouteContext, answer: object): void {
  const { data } = versionedAnswer.safeParse(answer);
  if (data !== undefined) ctx.set('etag', `"${data.version}"`);
}

/**
 * Returns a check of the thing that is about to be changed. It throws 412 where the request names another version in `if-match`. Without that
 * header the last writer wins.
 */
export function versionCheck({ req }: RouteContext): (current: object) => void {
  const wanted = req.headers['if-match']?.trim().replace(/^W\//, '').replaceAll('"', '');
  return (current) => {
    if (wanted === undefined || wanted === '*' || wanted === versionOf(current)) return;
    throw new GatewayError('conflict', 'This was changed since you read it. Read it again, and retry.', {
      status: 412,
      retryable: false,
    });
  };
}
