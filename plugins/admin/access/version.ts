/** Versions of what administrators edit, so that of two who edit one thing the second is told. */
import { hash } from 'node:crypto';
import { GatewayError, type RouteContext } from 'sluice';

/** Returns the version of a thing: a text that changes with it. */
export function versionOf(thing: object): string {
  return hash('sha256', JSON.stringify(thing)).slice(0, 16);
}

/**
 * Returns a check of the thing that is about to be changed. It throws 412 where the request names another version in `if-match`. Without that
 * header the last writer wins.
 */
export function versionCheck({ req }: RouteContext): (current: object) => void {
  const wanted = req.headers['if-match']?.trim().replace(/^W\//, '').replaceAll('"', '');
  return (current) => {
    if (wanted === undefined || wanted === '*' || wanted === versionOf(current)) return;
    throw new GatewayError('conflict', 'Somebody else has changed this meanwhile. Read it again.', {
      status: 412,
      retryable: false,
    });
  };
}
