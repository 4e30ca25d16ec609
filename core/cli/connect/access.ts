/**
 * The options of `sluice connect` and `sluice doctor agents` that name a gateway, an API key and models, and their check against that
 * gateway.
 */
import { readFileSync } from 'node:fs';
import { env } from '../../settings/environment.ts';
import { UsageError } from '../command.ts';
import type { Access } from './agent.ts';
import { fetchServed } from './fetch-served.ts';

/** The options, as `readArguments` takes them. */
export const accessOptions = {
  url: { type: 'string' },
  key: { type: 'string' },
  'key-env': { type: 'string' },
  model: { type: 'string' },
  'small-model': { type: 'string' },
  offline: { type: 'boolean' },
} as const;

/** Their values. */
export interface AccessOptions {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  readonly 'key-env'?: string | undefined;
  readonly model?: string | undefined;
  readonly 'small-model'?: string | undefined;
  readonly offline?: boolean | undefined;
}

/** Returns the settings that an agent needs for the gateway, after a check at the gateway. Throws UsageError, or an Error that says what to do. */
export async function accessOf(options: AccessOptions): Promise<Access & { readonly secret: string }> {
  const url = addressOf(options.url ?? env('SLUICE_URL', 'http://localhost:8080'));
  const { key, secret } = keyOf(options);
  const small = options['small-model'];
  if (options.offline === true) {
    if (options.model === undefined) throw new UsageError('--offline needs a model: add --model MODEL.');
    return { url, key, secret, model: options.model, smallModel: small ?? options.model };
  }
  const served = await fetchServed(url, secret, options.model);
  if (small !== undefined) await fetchServed(url, secret, small);
  return { url, key, secret, smallModel: small ?? served.model, ...served };
}

/** Returns the address without `/v1` and a slash at its end, because agents append their own paths. */
function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.username !== '')
    throw new UsageError(`Invalid --url "${text}". Use an address such as http://localhost:8080.`);
  return `${url.origin}${url.pathname}`.replace(/\/(v1\/?)?$/, '');
}

/** Returns the key as the agent gets it, and the key itself, for requests to the gateway. */
function keyOf(options: AccessOptions): { readonly key: Access['key']; readonly secret: string } {
  const name = options['key-env'];
  if (name !== undefined) {
    if (options.key !== undefined) throw new UsageError('Use either --key or --key-env.');
    if (!/^[A-Za-z_]\w{0,99}$/.test(name))
      throw new UsageError('--key-env must be the name of an environment variable, such as SLUICE_API_KEY.');
    const secret = env(name) ?? '';
    if (secret === '' && options.offline !== true)
      throw new UsageError(`The environment variable ${name} is not set. Export it, or add --offline.`);
    return { key: { env: name }, secret };
  }
  const given = options.key === '-' ? readFileSync(0, 'utf8').trim() : options.key;
  const secret = given ?? env('SLUICE_KEY') ?? '';
  if (secret === '') throw new UsageError('The API key is missing. Set --key, --key-env or $SLUICE_KEY.');
  if (!/^[\x21-\x7e]{1,500}$/.test(secret))
    throw new UsageError('The API key is invalid: it must have 1 to 500 ASCII characters without spaces.');
  return { key: { value: secret }, secret };
}
