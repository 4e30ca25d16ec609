/** Sends a request about an object to the provider that keeps it, and converts the provider's errors. */
import { lastValueFrom } from 'rxjs';
import {
  GatewayError,
  wholeBytes,
  parseObject,
  type BodyStream,
  type JsonObject,
  type Upstream,
  upstreamFailureOf,
} from 'sluice';
import { upstreamError } from 'sluice/channel-kit';
import { type Call } from 'sluice/internal';
import type { ObjectFormat } from './collections.ts';
import type { ProviderAccount } from './account.ts';

/** Request to a provider, with a path below the version of its API. */
export interface ProviderRequest {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PATCH';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body?: string;
  readonly upload?: BodyStream;
  readonly service?: 'upload';
}

/** Maximum number of bytes of an error response that are read. */
const longestError = 64 * 1024;

/**
 * Sends a request to the provider that keeps an object. Resolves when a successful response has begun. Throws 404 when the provider does not have
 * the object, its converted error when it refuses, and 502 to 504 when it cannot respond.
 */
export async function sendRequest(
  call: Call,
  { channel, key }: ProviderAccount,
  format: ObjectFormat,
  { method, path, query = {}, headers = {}, body = '', ...rest }: ProviderRequest,
): Promise<Upstream> {
  const target = { channel, key, model: '', traits: {} };
  const answer = await channel.open(call.with({ target }), {
    operation: 'state',
    format,
    model: '',
    stream: false,
    method,
    path,
    query,
    headers,
    body,
    ...rest,
  });
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw refusal(answer, (await bytesOf(answer, longestError).catch(() => Buffer.alloc(0))).toString());
}

/** Sends a request like {@link sendRequest}, and reads the JSON object of the response, of at most `limit` bytes. */
export async function requestJson(
  call: Call,
  account: ProviderAccount,
  format: ObjectFormat,
  question: ProviderRequest,
  limit: number,
): Promise<JsonObject> {
  return jsonOf(await sendRequest(call, account, format, question), limit);
}

/** Reads the JSON object of a response; an empty object where the body is empty. */
export async function jsonOf(answer: Upstream, limit: number): Promise<JsonObject> {
  const bytes = await bytesOf(answer, limit);
  const json = bytes.length === 0 ? {} : parseObject(bytes.toString());
  if (json === undefined)
    throw new GatewayError('upstream_error', 'The upstream returned a response that is not JSON.', {
      origin: 'upstream',
    });
  return json;
}

function bytesOf({ bytes }: Upstream, limit: number): Promise<Buffer> {
  return lastValueFrom(bytes.pipe(wholeBytes(limit)));
}

/** Converts a provider's error response. Errors about the operator's credentials are not shown to the client. */
function refusal({ status, headers }: Upstream, text: string): GatewayError {
  const error = upstreamError(status < 400 ? 502 : status, text, headers);
  const message = upstreamFailureOf(error)?.message ?? '';
  if (status === 404 || status === 410)
    return new GatewayError(
      'not_found',
      message === '' ? 'The provider does not have this object.' : message,
      {
        origin: 'upstream',
      },
    );
  if (status === 409)
    return new GatewayError('conflict', message === '' ? error.message : message, { retryable: false });
  return error;
}

/** Returns true for an error by which a provider reports that an object does not exist. */
export function isGone(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'not_found' && error.origin === 'upstream';
}
