/** Asks the admin API of a gateway that runs elsewhere, for commands that work on it. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { JsonValue } from '../model/json.ts';
import type { ServiceRequest } from '../sdk/author/services.ts';
import { env } from '../settings/environment.ts';
import { tokenPrefix } from '../state/admin-tokens/index.ts';
import { openServices } from '../upstream/services.ts';
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

/**
 * Returns the gateway that the options, or the variables SLUICE_GATEWAY and SLUICE_TOKEN, name; undefined without one. Throws a UsageError
 * for an address or a token that is none. No message shows the token.
 */
export function remoteAccess(options: RemoteOptions): RemoteAccess | undefined {
  const address = options.gateway ?? env('SLUICE_GATEWAY');
  if (address === undefined || address === '') {
    if (options.token !== undefined) throw new UsageError('--token needs --gateway URL, or SLUICE_GATEWAY.');
    return undefined;
  }
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new UsageError(
      'The address of the gateway cannot be read. Write it as https://gateway.example.com.',
    );
  const given = options.token === '-' ? readFileSync(0, 'utf8').trim() : options.token;
  const token = given ?? env('SLUICE_TOKEN') ?? '';
  if (!new RegExp(`^${tokenPrefix}[0-9A-Za-z]{1,100}$`).test(token))
    throw new UsageError(
      `Give a token of the admin API, which begins with ${tokenPrefix}, in SLUICE_TOKEN, or by --token - on standard input.`,
    );
  return { url: `${url.origin}${url.pathname}`.replace(/\/+$/, ''), token };
}

/** A question to the admin API. */
export type AskAdmin = (
  method: NonNullable<ServiceRequest['method']>,
  path: string,
  json?: JsonValue,
) => Promise<JsonValue>;

/** Lets `work` ask the admin API. Certificates are checked. Rejects with the sentence of the gateway when it refuses. */
export async function withRemote<Result>(
  { url, token }: RemoteAccess,
  work: (ask: AskAdmin) => Promise<Result>,
): Promise<Result> {
  const services = openServices();
  try {
    return await work(async (method, path, json) => {
      const answer = await services.ask({
        url: `${url}/api/admin${path}`,
        method,
        headers: {
          authorization: `Bearer ${token}`,
          // A connection that breaks and is opened anew must not create two things.
          ...(method === 'POST' && { 'idempotency-key': randomUUID() }),
        },
        ...(json !== undefined && { json }),
      });
      if (answer.status >= 200 && answer.status < 300) return answer.json();
      throw new Error(
        `${url} answered ${method} ${path.split('?')[0]} with ${answer.status}. ${reasonOf(answer)}`.trim(),
      );
    });
  } finally {
    await services.close();
  }
}

function reasonOf(answer: { json(): JsonValue }): string {
  try {
    return refusal.parse(answer.json()).error.message;
  } catch {
    return 'It is no gateway of Sluice, or has no admin API.';
  }
}
