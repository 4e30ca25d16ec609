/** Handles one SCIM request and its response: body, version, and errors in the format of SCIM. */
import { GatewayError, type JsonObject, type JsonValue, type RouteContext } from 'sluice';
import { parseJsonBody, readBytes, type InternalTools } from 'sluice/internal';
import { setErrorHeaders } from '../http.ts';
import { errorBody, ScimError } from './errors.ts';
import type { NoteChange } from './note.ts';

const limits = { body: 2 * 1024 * 1024, depth: 10, values: 100_000, members: 2_000 };

/** A request to SCIM that may be answered. */
export interface ScimRequest {
  readonly ctx: RouteContext;
  /** The `:id` of the path. */
  readonly id: string;
  readonly query: URLSearchParams;
  /** The address that stands before `/Users`. */
  readonly base: string;
  readonly note: NoteChange;
  body(): Promise<JsonValue>;
}

/** A response of SCIM. */
export interface Answer {
  readonly status: number;
  readonly body?: JsonObject;
}

/** Answers requests of a route. */
export type Handler = (request: ScimRequest) => Answer | Promise<Answer>;
/** Methods of routes. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Adds a route below `/scim/v2`. */
export type Add = (method: Method, path: string, handler: Handler) => void;

/** Parses the JSON of a request. Throws when it is invalid or too long. */
export async function bodyOf(ctx: RouteContext): Promise<JsonValue> {
  const type = ctx.get('content-type').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/scim+json' && type !== 'application/json')
    throw new ScimError(415, 'The body must be application/scim+json.');
  return parseJsonBody(await readBytes(ctx.req, limits.body), limits);
}

/** Writes a response, with its version and place. */
export function send(ctx: RouteContext, { status, body }: Answer): void {
  ctx.status = status;
  if (body === undefined) {
    ctx.body = null;
    ctx.status = status;
    return;
  }
  const meta = body['meta'] as JsonObject | undefined;
  if (typeof meta?.['version'] === 'string') ctx.set('etag', meta['version']);
  if (status === 201 && typeof meta?.['location'] === 'string') ctx.set('location', meta['location']);
  if (status === 200 && ctx.method === 'GET' && isSame(ctx.get('if-none-match'), meta?.['version'])) {
    ctx.body = null;
    ctx.status = 304;
    return;
  }
  ctx.type = 'application/scim+json';
  ctx.body = JSON.stringify(body);
}

/** Answers with what went wrong. */
export function refuse(ctx: RouteContext, error: unknown, log: InternalTools['log']): void {
  const { status, body } = errorBody(error);
  if (status === 500) log.error({ error }, 'a SCIM request failed');
  if (status === 401) ctx.set('www-authenticate', 'Bearer');
  if (status === 503) ctx.set('retry-after', '2');
  if (error instanceof GatewayError) setErrorHeaders(ctx, error);
  ctx.status = status;
  ctx.type = 'application/scim+json';
  ctx.body = JSON.stringify(body);
}

/** Returns true when a header lists this version. An absent header lists none. */
function isSame(header: string, version: JsonValue | undefined): boolean {
  if (header === '') return false;
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '');
  return header.split(',').some((tag) => tag.trim() === '*' || bare(tag) === bare(String(version)));
}

/** Throws 412 for a change of a version that is not the present one. */
export function checkVersion({ ctx }: ScimRequest, resource: JsonObject): void {
  const header = ctx.get('if-match');
  if (header === '' || isSame(header, (resource['meta'] as JsonObject)['version'])) return;
  throw new ScimError(412, 'The resource has changed since: read it again.');
}
