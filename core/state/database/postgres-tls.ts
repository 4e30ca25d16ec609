/** Reads the TLS parameters of a PostgreSQL URL (`sslmode`, certificates) as libpq does. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { env } from '../../settings/environment.ts';

/** TLS options of a connection; false for none. */
export type PostgresTls = false | ConnectionOptions;

const modes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof modes)[number];

/** Parameters of the URL that are read here or in `postgres-pool.ts`, not by the driver, which gives some of them another meaning. */
const own = new Set([
  'ssl',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslpassword',
  'uselibpqcompat',
  'answer_timeout',
]);

/** Returns the URL for the driver, without the parameters that are read here. */
export function withoutOwnParameters(url: string): string {
  const [address = '', query] = url.split(/\?(.*)/s);
  if (query === undefined) return url;
  const kept = query.split('&').filter((part) => !own.has(part.split('=')[0] ?? ''));
  return kept.length === 0 ? address : `${address}?${kept.join('&')}`;
}

/**
 * Returns the TLS options to try, in the order of libpq for the `sslmode` of the URL. `require` encrypts and does not verify the server, unless
 * there is an `sslrootcert`. `verify-ca` checks the authority, `verify-full` the name as well; without
 * `sslrootcert` that is Node's list of authorities, where libpq would look for a file. Default: `prefer`. Throws an Error for the operator.
 */
export function tlsWays(url: string, masked: string): readonly PostgresTls[] {
  const parameters = new URL(url).searchParams;
  const given = (name: string): string | undefined => parameters.get(name) ?? env(`PG${name.toUpperCase()}`);
  const root = given('sslrootcert');
  const mode = modeOf(parameters, root, masked);
  const host = parameters.get('host') ?? decodeURIComponent(new URL(url).hostname);
  if (mode === 'disable' || host.startsWith('/')) return [false];
  const read = (name: string): string | undefined => {
    const path = given(name);
    if (path === undefined || path === 'system') return undefined;
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`The ${name} of the database URL ${masked} cannot be read: ${reason}.`, {
        cause: error,
      });
    }
  };
  const [ca, cert, key, passphrase] = [
    read('sslrootcert'),
    read('sslcert'),
    read('sslkey'),
    parameters.get('sslpassword'),
  ];
  const secure: ConnectionOptions = {
    rejectUnauthorized: mode.startsWith('verify-') || root !== undefined,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(passphrase === null ? {} : { passphrase }),
    ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
  if (mode === 'allow') return [false, secure];
  return mode === 'prefer' ? [secure, false] : [secure];
}

function modeOf(parameters: URLSearchParams, root: string | undefined, masked: string): SslMode {
  const usual =
    root === 'system' || ['true', '1'].includes(parameters.get('ssl') ?? '') ? 'verify-full' : 'prefer';
  const text =
    parameters.get('sslmode') ?? (parameters.get('ssl') === '0' ? 'disable' : env('PGSSLMODE', usual));
  // `no-verify` is the driver's name for libpq's `require`.
  const mode = modes.find((one) => one === (text === 'no-verify' ? 'require' : text));
  if (mode === undefined)
    throw new Error(`The database URL ${masked} has an sslmode that is none of ${modes.join(', ')}.`);
  if (root === 'system' && mode !== 'verify-full')
    throw new Error(
      `The database URL ${masked} has sslrootcert=system, with which anybody may have a certificate: set sslmode=verify-full.`,
    );
  return mode;
}
