/** The config names secrets of Google Secret Manager by reference: `google:SECRET?version=N#FIELD`. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import {
  defineSecrets,
  requirePackage,
  secret,
  secretUrl,
  type SecretSource,
  type SecretTools,
} from 'sluice';

const options = z.strictObject({
  /** Id of the project for secrets whose reference is not `projects/PROJECT/secrets/SECRET`. */
  project: z
    .string()
    .regex(/^[a-z0-9:.-]{1,100}$/, 'must be the id or the number of a project')
    .optional(),
  /** Region of regional secrets: `europe-west3`. */
  location: z
    .string()
    .regex(/^[a-z]+-[a-z]+\d$/, 'must be a region, such as europe-west3')
    .optional(),
  /**
   * Key of a service account, or configuration of a workload identity pool: the path of a file, or its JSON text. Default: Application
   * Default Credentials. Requires `google-auth-library`.
   */
  credentials: secret(z.string().min(1)).optional(),
  /** URL in place of Google's endpoint. */
  endpoint: secretUrl(z.url({ protocol: /^https?$/ })).optional(),
});

type Options = z.output<typeof options>;

/** See projects.secrets.versions.access: https://cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/access */
const answered = z.object({ payload: z.object({ data: z.base64(), dataCrc32c: z.string().optional() }) });

const refused = z.object({ error: z.object({ status: z.string().optional() }) });

/** Largest answer, in bytes: a secret has at most 64 KiB. */
const maxBytes = 512 * 1024;

const advice: Readonly<Record<number, string>> = {
  400: 'the version may be disabled or destroyed: enable it, or name another one',
  401: 'check the credentials',
  403: 'give the account the role Secret Manager Secret Accessor for this secret',
  429: 'the quota of the project is used up: read secrets less often with secrets.refresh',
};

/** Reads secrets of Google Secret Manager, by version 1 of its REST API. */
export default defineSecrets({ name: 'secrets-google', source: 'google', options, open });

function open(chosen: Options, { http }: SecretTools): SecretSource {
  const token = googleTokens(chosen.credentials);
  return {
    async read({ name, version = 'latest', signal }) {
      const resource = resourceOf(name, chosen);
      const [, location] = /\/locations\/([a-z0-9-]+)\//.exec(resource) ?? [];
      const origin =
        chosen.endpoint ??
        `https://secretmanager.${location === undefined ? '' : `${location}.rep.`}googleapis.com`;
      const answer = await http.ask({
        url: `${origin.replace(/\/+$/, '')}/v1/${resource}/versions/${encodeURIComponent(version)}:access`,
        headers: { authorization: `Bearer ${await token()}` },
        limit: maxBytes,
        timeout: 60_000,
        signal,
      });
      const { status } = answer;
      if (status === 404) return undefined;
      if (status !== 200) {
        const code = refused.safeParse(jsonOf(answer.text())).data?.error.status ?? '';
        throw new Error(
          `Google Secret Manager returned status ${status}${/^[A-Z_]{1,50}$/.test(code) ? ` ${code}` : ''}: ${advice[status] ?? 'see https://status.cloud.google.com'}`,
        );
      }
      const { data, dataCrc32c } = answered.parse(answer.json()).payload;
      const bytes = Buffer.from(data, 'base64');
      if (dataCrc32c !== undefined && dataCrc32c !== String(crc32c(bytes)))
        throw new Error('Google Secret Manager sent a secret whose checksum is not that of its data');
      return utf8(bytes);
    },
  };
}

function resourceOf(name: string, { project, location }: Options): string {
  if (/^projects\/[a-z0-9:.-]+\/(?:locations\/[a-z0-9-]+\/)?secrets\/[\w-]{1,255}$/.test(name)) return name;
  if (!/^[\w-]{1,255}$/.test(name))
    throw new Error('a secret of Google is named SECRET or projects/PROJECT/secrets/SECRET');
  if (project === undefined)
    throw new Error(
      'the reference names no project: set "project" of the plugin, or write projects/PROJECT/secrets/SECRET',
    );
  return `projects/${project}/${location === undefined ? '' : `locations/${location}/`}secrets/${name}`;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('the secret is binary, not text');
  }
}

/** Returns the checksum that Google sends with a secret: CRC-32C (Castagnoli), which Node does not have. */
function crc32c(bytes: Uint8Array): number {
  let sum = 0xff_ff_ff_ff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0x82_f6_3b_78 : 0);
  }
  return (sum ^ 0xff_ff_ff_ff) >>> 0;
}

/** Returns a function that gets a token from Google's library, which keeps and renews it. */
function googleTokens(credentials: string | undefined): () => Promise<string> {
  requirePackage('google-auth-library', '11', 'ask Google for tokens');
  let auth: Promise<{ getAccessToken(): Promise<string | null | undefined> }> | undefined;
  return async () => {
    try {
      auth ??= openAuth(credentials);
      const token = await (await auth).getAccessToken();
      if (typeof token !== 'string' || token === '') throw new Error('no token was given');
      return token;
    } catch (error) {
      auth = undefined;
      throw new Error(
        `Google returned no access token (${reasonOf(error)}): check "credentials", GOOGLE_APPLICATION_CREDENTIALS, or the account of this machine`,
        { cause: error },
      );
    }
  };
}

async function openAuth(credentials: string | undefined) {
  const { GoogleAuth } = await import('google-auth-library');
  const scopes = ['https://www.googleapis.com/auth/cloud-platform'];
  if (credentials === undefined) return new GoogleAuth({ scopes });
  const text = credentials.trimStart().startsWith('{') ? credentials : await readFile(credentials, 'utf8');
  const given = jsonOf(text);
  if (typeof given !== 'object' || given === null) throw new Error('the credentials are not a JSON object');
  return new GoogleAuth({ scopes, credentials: given as object });
}

/** Returns the error message of the endpoint without the sent values. */
function reasonOf(error: unknown): string {
  const { code, response, message } = error as {
    readonly code?: unknown;
    readonly message?: string;
    readonly response?: { readonly status?: number; readonly data?: { readonly error?: unknown } };
  };
  const reason = response?.data?.error;
  if (typeof reason === 'string') return reason.slice(0, 100);
  if (response?.status !== undefined) return `status ${response.status}`;
  return typeof code === 'string' ? code : (message ?? 'it failed').slice(0, 200);
}
