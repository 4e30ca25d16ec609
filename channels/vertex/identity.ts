/** Gets access tokens from Google Cloud, and defines the channel option `credentials`. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env, requirePackage, secret, parseObject } from 'sluice';
import type { AccessToken } from 'sluice/channel-kit';
import { hideSecretsIn } from 'sluice/internal';
import { z } from 'zod';

/**
 * The option `credentials`: a service account's key, or the configuration of a workload identity pool, as the path of a file, JSON text, or
 * an object. Default: Google's own search.
 */
export const googleCredentials = secret(z.union([z.string().min(1), z.record(z.string(), z.unknown())]));

/** Options of the identity. */
export interface GoogleIdentity {
  readonly credentials?: z.output<typeof googleCredentials> | undefined;
}

/** Function that sends the library's requests. */
type Fetch = typeof globalThis.fetch;

const scopes: string[] = ['https://www.googleapis.com/auth/cloud-platform'];
/** Assumed lifetime of tokens without an expiry. */
const ordinaryLife = 50 * 60_000;

/**
 * Asks Google for access tokens: a service account, a workload identity pool, the file of `gcloud auth application-default login`, or the
 * machine's own account, whichever is found first. The library that knows how is loaded by the first question. `fetch` replaces the way
 * to the endpoints. Throws where the library is not installed.
 */
export function googleTokens({ credentials }: GoogleIdentity, fetch?: Fetch): () => Promise<AccessToken> {
  requirePackage('google-auth-library', '11', 'ask Google for tokens');
  const source = sourceOf(credentials);
  let client:
    | Promise<{ getAccessToken(): Promise<{ token?: string | null }>; credentials: object }>
    | undefined;
  return async () => {
    try {
      client ??= openClient(credentials, fetch);
      const opened = await client;
      const { token } = await opened.getAccessToken();
      if (typeof token !== 'string' || token === '') throw new Error('no token was given');
      const { expiry_date: expires } = opened.credentials as { readonly expiry_date?: unknown };
      return { token, expiresAtMs: typeof expires === 'number' ? expires : Date.now() + ordinaryLife };
    } catch (error) {
      client = undefined;
      throw new Error(
        `Google returned no access token for ${source.name}: ${reasonOf(error)}. ${source.advice}`,
        { cause: error },
      );
    }
  };
}

/** Source of tokens: the part that all clients of the library share. */
interface TokenClient {
  readonly credentials: object;
  getAccessToken(): Promise<{ token?: string | null }>;
}

async function openClient(
  credentials: GoogleIdentity['credentials'],
  fetch: Fetch | undefined,
): Promise<TokenClient> {
  const { ExternalAccountClient, GoogleAuth, JWT, UserRefreshClient } = await import('google-auth-library');
  const way = fetch === undefined ? {} : { transporterOptions: { fetchImplementation: fetch } };
  const given = await readCredentials(credentials);
  if (given === undefined) return (await new GoogleAuth({ scopes }).getClient()) as TokenClient;
  const word = (name: string): string => String(given[name] ?? '');
  switch (given['type']) {
    case 'service_account':
      return new JWT({ ...way, email: word('client_email'), key: word('private_key'), scopes: [...scopes] });
    case 'external_account': {
      const client = ExternalAccountClient.fromJSON({ ...given, scopes, ...way } as never);
      if (client === null) throw new Error('it describes no workload identity');
      return client as TokenClient;
    }
    case 'authorized_user':
      return new UserRefreshClient({
        ...way,
        clientId: word('client_id'),
        clientSecret: word('client_secret'),
        refreshToken: word('refresh_token'),
      });
    default:
      throw new Error(
        `its type is ${JSON.stringify(given['type'] ?? null)}, not service_account, external_account or authorized_user`,
      );
  }
}

/**
 * Returns the content of the credentials: of the object or JSON text in the config, or of the file that the config or the environment names;
 * undefined where neither does. No error shows what the option holds, because a key pasted in a wrong form would be shown.
 */
async function readCredentials(
  credentials: GoogleIdentity['credentials'],
): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (typeof credentials === 'object') return credentials;
  if (credentials !== undefined && isJsonText(credentials)) return parseCredentials(credentials);
  const file = credentials ?? env('GOOGLE_APPLICATION_CREDENTIALS');
  if (file === undefined || file === '') return undefined;
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file cannot be read (${error.code ?? error.name})`, { cause: error.code });
  });
  const read = parseCredentials(text);
  // Errors of the identity endpoint may quote what was sent.
  hideSecretsIn(googleCredentials, read);
  return read;
}

function isJsonText(credentials: string): boolean {
  return credentials.trimStart().startsWith('{');
}

function parseCredentials(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseObject(text);
  if (parsed === undefined) throw new Error('it is not a JSON object');
  return parsed;
}

/** Returns the link of Google's chain that is in force, by name, and what its operator can do. */
function sourceOf(credentials: GoogleIdentity['credentials']): {
  readonly name: string;
  readonly advice: string;
} {
  if (credentials !== undefined)
    return {
      name:
        typeof credentials === 'object' || isJsonText(credentials)
          ? 'the credentials in the config'
          : 'the file that credentials names',
      advice: 'Give a service account’s key that exists and may use Vertex AI as credentials.',
    };
  const file = env('GOOGLE_APPLICATION_CREDENTIALS');
  if (file !== undefined && file !== '')
    return {
      name: `the file that GOOGLE_APPLICATION_CREDENTIALS names, ${file}`,
      advice:
        'Let it name the key of a service account, or the configuration of a workload identity pool, that is still good.',
    };
  const wellKnown = join(
    env('CLOUDSDK_CONFIG') ?? join(homedir(), '.config', 'gcloud'),
    'application_default_credentials.json',
  );
  if (existsSync(wellKnown))
    return {
      name: 'the login of gcloud on this machine',
      advice: 'Run "gcloud auth application-default login" again.',
    };
  return {
    name: 'the account of this machine (metadata server)',
    advice:
      'Outside Google Cloud set GOOGLE_APPLICATION_CREDENTIALS to the key of a service account, give credentials in the config, or run "gcloud auth application-default login".',
  };
}

/** Returns the error message of the endpoint, without the credentials that were sent to it. */
function reasonOf(error: unknown): string {
  const { response, message } = error as {
    readonly message?: string;
    readonly response?: { readonly status?: number; readonly data?: unknown };
  };
  const data = response?.data as
    | { readonly error?: unknown; readonly error_description?: unknown }
    | undefined;
  const reason = [data?.error, data?.error_description].filter((word) => typeof word === 'string').join(', ');
  if (reason !== '') return reason.slice(0, 300);
  if (response?.status !== undefined) return `status ${response.status}`;
  return (message ?? String(error)).slice(0, 300).replace(/\.$/, '');
}
