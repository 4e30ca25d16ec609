/** Client of the admin API for the commands that use it. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { JsonValue } from '../model/json.ts';
import type { ServiceAnswer, ServiceRequest } from '../sdk/author/services.ts';
import { env } from '../settings/environment.ts';
import { adminTokenPrefix } from '../sdk/admin-token.ts';
import { openServices } from '../upstream/services.ts';
import { CommandFailure, exitCodeOf } from './admin/failure.ts';
import { UsageError } from './command.ts';

/** The options that name a gateway, as `readArguments` takes them. */
export const remoteOptions = { gateway: { type: 'string' }, token: { type: 'string' } } as const;

/** Their values. */
export interface RemoteOptions {
  readonly gateway?: string | undefined;
  readonly token?: string | undefined;
}

/** Address of the admin API, and the token for it. */
export interface RemoteAccess {
  readonly url: string;
  readonly token: string;
}

const refusal = z.object({ error: z.object({ message: z.string().max(2_000) }) });

/** Returns the address that the options, or the variable SLUICE_GATEWAY, name. Throws a UsageError when the address is invalid. */
export function remoteAddress(options: RemoteOptions): string | undefined {
  const address = options.gateway ?? env('SLUICE_GATEWAY');
  if (address === undefined || address === '') return undefined;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new UsageError(
      'Invalid address of the gateway. Use an address such as https://gateway.example.com.',
    );
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/**
 * Returns the gateway that the options, or the variables SLUICE_GATEWAY and SLUICE_TOKEN, name; undefined without one. Throws a UsageError
 * when the address or the token is invalid. The message does not contain the token.
 */
export function remoteAccess(options: RemoteOptions): RemoteAccess | undefined {
  const url = remoteAddress(options);
  if (url === undefined) {
    if (options.token !== undefined) throw new UsageError('--token needs --gateway URL, or SLUICE_GATEWAY.');
    return undefined;
  }
  const given = options.token === '-' ? readFileSync(0, 'utf8').trim() : options.token;
  const token = given ?? env('SLUICE_TOKEN') ?? '';
  if (!new RegExp(`^${adminTokenPrefix}[0-9A-Za-z]{1,100}$`).test(token))
    throw new UsageError(
      `A valid token of the admin API is missing. Set SLUICE_TOKEN, or use --token - and standard input. Tokens begin with ${adminTokenPrefix}.`,
    );
  return { url, token };
}

/** Sends a request to the admin API. A path that begins with /api/ belongs to another plugin. */
export type AdminRequester = (
  method: NonNullable<ServiceRequest['method']>,
  path: string,
  json?: JsonValue,
  headers?: Readonly<Record<string, string>>,
) => Promise<JsonValue>;

/** Streams a response to standard output, with backpressure. */
export type WriteAdmin = (path: string) => Promise<void>;

/** Timeouts in milliseconds. A change takes longer, because the gateway responds when it is applied, or when the provider of a test has responded. */
const longest = { read: 30_000, change: 120_000 } as const;

/** Maximum size of a response, in bytes. */
const largest = 64 * 1024 * 1024;

/** Runs `work` with access to the admin API. Verifies certificates. Rejects with the error message of the gateway. */
export async function withRemote<Result>(
  { url, token }: RemoteAccess,
  work: (request: AdminRequester, write: WriteAdmin) => Promise<Result>,
): Promise<Result> {
  const services = openServices();
  const addressOf = (path: string): string => `${url}${path.startsWith('/api/') ? '' : '/api/admin'}${path}`;
  const authorization = `Bearer ${token}`;
  try {
    return await work(
      async (method, path, json, headers) => {
        const answer = await services.ask({
          url: addressOf(path),
          method,
          limit: largest,
          timeout: method === 'GET' ? longest.read : longest.change,
          headers: {
            authorization,
            // A retry after a broken connection must not create the same thing twice.
            ...(method === 'POST' && { 'idempotency-key': randomUUID() }),
            ...headers,
          },
          ...(json !== undefined && { json }),
        });
        if (answer.status >= 200 && answer.status < 300) return answer.json();
        throw failureOf(url, answer);
      },
      async (path) => {
        const answer = await services.open({ url: addressOf(path), headers: { authorization } });
        if (answer.status !== 200) {
          const bytes: Buffer[] = [];
          for await (const piece of answer.body) {
            bytes.push(piece);
            if (bytes.length > 100) break;
          }
          throw failureOf(url, {
            status: answer.status,
            headers: answer.headers,
            json: () => JSON.parse(Buffer.concat(bytes).toString()) as JsonValue,
          });
        }
        for await (const piece of answer.body)
          if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
      },
    );
  } finally {
    await services.close();
  }
}

/** Fetches a resource of a gateway that needs no token. */
export async function fetchPublic(url: string, path: string): Promise<JsonValue> {
  const services = openServices();
  try {
    const answer = await services.ask({ url: `${url}${path}` });
    if (answer.status === 200) return answer.json();
    throw failureOf(url, answer);
  } finally {
    await services.close();
  }
}

/** Returns the failure with the error message of the gateway and the time to wait before a retry. */
function failureOf(
  url: string,
  answer: Pick<ServiceAnswer, 'status' | 'headers'> & { json(): JsonValue },
): CommandFailure {
  const reason = reasonOf(answer);
  const sentence =
    reason ??
    `${url} returned status ${answer.status} without an error message. It is not a Sluice gateway, or its admin API is disabled.`;
  const seconds = answer.headers['retry-after'];
  const again = answer.status === 429 && typeof seconds === 'string' ? ` Retry in ${seconds} seconds.` : '';
  return new CommandFailure(`${sentence}${again}`, exitCodeOf(answer.status));
}

function reasonOf(answer: { json(): JsonValue }): string | undefined {
  try {
    return refusal.parse(answer.json()).error.message.replaceAll(/\p{C}+/gu, ' ');
  } catch {
    return undefined;
  }
}
