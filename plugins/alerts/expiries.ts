/** Finds API keys, certificates and credentials that expire soon. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import type { Operations } from 'sluice';
import { limits, type Condition } from './alert.ts';
import type { AlertsOptions } from './options.ts';

const day = 86_400_000;

/** Everything is looked at again after so many milliseconds. */
const lookAgainAfter = 3_600_000;

/** Keys of one page, and pages of one look. */
const pageSize = 200;
const maxPages = 500;

/** Milliseconds for the handshake with an address whose certificate is watched. */
const handshakeMs = 5_000;

/** Something that expires. */
interface Expiring {
  readonly name: string;
  readonly sentence: string;
  readonly expiresAt: number;
  readonly view: string;
  readonly teams?: string[];
}

/** What expires, as it was found by the last look. */
export class ExpiryWatch {
  readonly #options: Pick<AlertsOptions, 'certificates' | 'expiring' | 'expiryDays'>;
  readonly #failed: (certificate: string, error: unknown) => void;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #found: readonly Expiring[] = [];

  constructor(
    options: Pick<AlertsOptions, 'certificates' | 'expiring' | 'expiryDays'>,
    failed: (certificate: string, error: unknown) => void,
  ) {
    this.#options = options;
    this.#failed = failed;
  }

  /** Returns the conditions of everything that expires soon; at most once an hour it is asked for. */
  async look(operations: Pick<Operations, 'keys'>, now: number): Promise<readonly Condition[]> {
    const { expiryDays } = this.#options;
    if (expiryDays.length === 0) return [];
    if (now - this.#lookedAt >= lookAgainAfter) {
      this.#lookedAt = now;
      const until = now + expiryDays.reduce((most, one) => Math.max(most, one), 0) * day;
      const found = [
        ...this.#credentials(),
        ...(await this.#certificates()),
        ...(await expiringKeys(operations, now, until)),
      ];
      this.#found = found
        .toSorted((one, other) => one.expiresAt - other.expiresAt)
        .slice(0, limits.conditions);
    }
    return this.#found.flatMap((one) => conditionOf(one, expiryDays, now) ?? []);
  }

  #credentials(): Expiring[] {
    return Object.entries(this.#options.expiring).map(([name, at]) => ({
      name: `credential ${name}`,
      sentence: `The credential "${name}"`,
      expiresAt: Date.parse(at),
      view: 'channels',
    }));
  }

  async #certificates(): Promise<readonly Expiring[]> {
    const found = await Promise.all(
      this.#options.certificates.map(async (place) => {
        try {
          const expiresAt = await endOfCertificate(place);
          return [
            {
              name: `certificate ${place}`,
              sentence: `The certificate of ${place}`,
              expiresAt,
              view: 'processes',
            },
          ];
        } catch (error) {
          this.#failed(place, error);
          return [];
        }
      }),
    );
    return found.flat();
  }
}

function conditionOf(one: Expiring, days: readonly number[], now: number): Condition | undefined {
  const { expiresAt, name, sentence, view, teams } = one;
  const left = expiresAt - now;
  const level = days.toSorted((a, b) => a - b).find((each) => left <= each * day);
  if (level === undefined) return undefined;
  const when = new Date(expiresAt).toISOString().slice(0, 16).replace('T', ' ');
  return {
    id: `expiry ${name} ${expiresAt} ${level}`,
    kind: 'expiry',
    subject: name,
    severity: level <= 1 ? 'critical' : level <= 7 ? 'warning' : 'info',
    text: `${sentence} ${left > 0 ? 'expires' : 'has expired'} at ${when} UTC.`,
    view,
    once: true,
    ...(teams === undefined ? {} : { teams }),
  };
}

/** Returns the keys that still work and expire before a time. */
async function expiringKeys(
  { keys }: Pick<Operations, 'keys'>,
  now: number,
  until: number,
): Promise<readonly Expiring[]> {
  const found: Expiring[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < maxPages && found.length < limits.conditions; pages += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each page leads to the next
    const page = await keys(pageSize, after);
    for (const { enabled, expiresAt, id, name, team } of page.keys)
      if (enabled && expiresAt !== undefined && expiresAt > now && expiresAt <= until)
        found.push({
          name: `key ${id}`,
          sentence: `The API key "${name}"`,
          expiresAt,
          view: 'keys',
          ...(team === undefined ? {} : { teams: [team] }),
        });
    after = page.next;
    if (after === undefined) break;
  }
  return found;
}

/** Returns when a certificate ends: that of a file, or that which an address shows, also where nobody trusts it. */
async function endOfCertificate(place: string): Promise<number> {
  if (!place.startsWith('https://')) return new X509Certificate(await readFile(place)).validToDate.getTime();
  const { hostname, port } = new URL(place);
  return new Promise((resolve, reject) => {
    const host = hostname.replaceAll(/[[\]]/g, '');
    const socket = connect({
      host,
      port: Number(port || 443),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      rejectUnauthorized: false,
    });
    socket.setTimeout(handshakeMs, () => socket.destroy(new Error('The handshake took too long.')));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const end = socket.getPeerX509Certificate()?.validToDate.getTime();
      socket.destroy();
      if (end === undefined) reject(new Error('It shows no certificate.'));
      else resolve(end);
    });
  });
}
