/** Finds API keys, certificates and credentials that expire soon. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import type { Operations, Owner } from 'sluice';
import { limits, type Condition } from './alert.ts';
import type { AlertsOptions } from './options.ts';

const day = 86_400_000;

/** Everything is looked at again after so many milliseconds. */
const lookAgainAfter = 3_600_000;

/** Keys of one page, and pages of one look. */
const pageSize = 200;
const maxPages = 500;

/** Timeout in milliseconds of the handshake with an address whose certificate is watched. */
const handshakeMs = 5_000;

/** Something that expires. */
interface Expiring {
  readonly name: string;
  readonly sentence: string;
  readonly expiresAt: number;
  readonly view: string;
  readonly teams?: string[];
}

type ExpiryOptions = Pick<AlertsOptions, 'certificates' | 'expiring' | 'expiryDays'>;

/** Receives what could not be read. */
export interface ExpiryFailures {
  certificate(certificate: string, error: unknown): void;
  keys(error: unknown): void;
}

/** Watches certificates, secrets and keys that expire, and keeps the findings of the last check. */
export class ExpiryWatch {
  readonly #options: ExpiryOptions;
  readonly #failures: ExpiryFailures;
  /** Things that are looked at once an hour, with the time of the last look that succeeded. */
  readonly #outside = { found: [] as readonly Expiring[], lookedAt: Number.NEGATIVE_INFINITY };
  readonly #keys = { found: [] as readonly Expiring[], lookedAt: Number.NEGATIVE_INFINITY };

  constructor(options: ExpiryOptions, failures: ExpiryFailures) {
    this.#options = options;
    this.#failures = failures;
  }

  /** Returns the conditions of everything that expires soon. Reads everything once an hour, and keys that could not be read at the next look. */
  async look(operations: Pick<Operations, 'keys'>, now: number): Promise<readonly Condition[]> {
    const { expiryDays } = this.#options;
    if (expiryDays.length === 0) return [];
    if (now - this.#outside.lookedAt >= lookAgainAfter) {
      this.#outside.found = [...this.#credentials(), ...(await this.#certificates())];
      this.#outside.lookedAt = now;
    }
    if (now - this.#keys.lookedAt >= lookAgainAfter) await this.#readKeys(operations, now);
    return [...this.#outside.found, ...this.#keys.found]
      .toSorted((one, other) => one.expiresAt - other.expiresAt)
      .slice(0, limits.conditions)
      .flatMap((one) => conditionOf(one, expiryDays, now) ?? []);
  }

  async #readKeys(operations: Pick<Operations, 'keys'>, now: number): Promise<void> {
    const until = now + this.#options.expiryDays.reduce((most, one) => Math.max(most, one), 0) * day;
    try {
      this.#keys.found = await expiringKeys(operations, now, until);
      this.#keys.lookedAt = now;
    } catch (error) {
      this.#failures.keys(error);
    }
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
      this.#options.certificates.map(async (certificate) => {
        try {
          const expiresAt = await endOfCertificate(certificate);
          return [
            {
              name: `certificate ${certificate}`,
              sentence: `The certificate of ${certificate}`,
              expiresAt,
              view: 'processes',
            },
          ];
        } catch (error) {
          this.#failures.certificate(certificate, error);
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
    for (const { enabled, expiresAt, id, name, owners = [], team } of page.keys)
      if (enabled && expiresAt !== undefined && expiresAt > now && expiresAt <= until)
        found.push({
          name: `key ${id}`,
          sentence: `The API key "${name}"`,
          expiresAt,
          view: 'keys',
          ...(team === undefined ? {} : { teams: [team, ...namesOf(owners, team)] }),
        });
    after = page.next;
    if (after === undefined) break;
  }
  return found;
}

function namesOf(owners: readonly Owner[], id: string): readonly string[] {
  return owners.filter((owner) => owner.id === id).map(({ name }) => name);
}

/** Returns when a certificate ends: that of a file, or that which an address shows, also where nobody trusts it. */
async function endOfCertificate(pathOrUrl: string): Promise<number> {
  if (!pathOrUrl.startsWith('https://'))
    return new X509Certificate(await readFile(pathOrUrl)).validToDate.getTime();
  const { hostname, port } = new URL(pathOrUrl);
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
      if (end === undefined) reject(new Error('It sent no certificate.'));
      else resolve(end);
    });
  });
}
