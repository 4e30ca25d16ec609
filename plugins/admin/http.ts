/**
 * HTTP details that all admin routes share: security headers, error responses, the session cookie, scheme and host behind trusted proxies, and the
 * check that refuses cross-site requests (CSRF).
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError, toGatewayError, addressList, type RouteContext, type Log } from 'sluice';

/** Headers of every response: it must not be cached, framed, or read as another content type or by another origin. */
const securityHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const;

const cookieName = 'sluice-session';
/** Lifetime of the cookie in milliseconds where the end of the session is not given. */
const usualLifetime = 12 * 3_600_000;

/** Sets the security headers of a response. */
export function secure(ctx: RouteContext): void {
  ctx.set(securityHeaders);
}

/** Message to a client about an error whose details are in the log alone. */
export const internalFailure = 'The gateway failed to handle this request. See its log.';

/** Writes an error response. Details of internal errors are written to the log only. */
export function refuse(ctx: RouteContext, thrown: unknown, log: Log): void {
  const error = toGatewayError(thrown);
  if (error.code === 'internal_error') log.error({ error: error.cause ?? error }, 'an admin request failed');
  setErrorHeaders(ctx, error);
  const { code, param, details } = error;
  const message = code === 'internal_error' ? internalFailure : error.message;
  ctx.status = error.status;
  const problems = details?.['problems'];
  ctx.body = {
    error: {
      code,
      message,
      ...(param === undefined ? {} : { param }),
      ...(Array.isArray(problems) ? { problems } : {}),
    },
  };
}

/** Sets the headers of an error, among them the seconds after which the client may try again. */
export function setErrorHeaders(ctx: RouteContext, { headers, retryAfter }: GatewayError): void {
  ctx.set(headers);
  if (retryAfter !== undefined) ctx.set('retry-after', String(Math.ceil(retryAfter)));
}

/** Returns the token in a request's session cookie. */
export function sessionToken({ cookies }: Pick<RouteContext, 'cookies'>): string | undefined {
  return cookies.get(cookieName);
}

/**
 * Sets the session cookie, or takes it away. `overHttps`: as the browser sees it, whatever the last proxy speaks. `until`: end of the session, in
 * milliseconds since 1970.
 */
export function setSessionCookie(
  { cookies }: RouteContext,
  token: string | undefined,
  overHttps: boolean,
  until?: number,
): void {
  cookies.secure = overHttps;
  const maxAge = until === undefined ? usualLifetime : Math.max(0, until - Date.now());
  cookies.set(cookieName, token, { sameSite: 'strict', overwrite: true, maxAge });
}

/** The connection between the browser and the outermost trusted proxy. */
export interface Outside {
  /** True where the browser's connection is encrypted. */
  readonly https: boolean;
  /** Host in the address that the browser uses. */
  readonly host: string | undefined;
}

/** Returns a function that reads scheme and host of a request as the browser sent it, from the headers of trusted proxies. */
export function createOutside(trustedProxies: readonly string[]): (request: IncomingMessage) => Outside {
  const trusted = addressList(trustedProxies);
  return ({ socket, headers }) => {
    const https = 'encrypted' in socket && socket.encrypted === true;
    const { host } = headers;
    if (!trusted.has(socket.remoteAddress ?? '')) return { https, host };
    const forwardedProto = first(headers['x-forwarded-proto']);
    return {
      https: forwardedProto === undefined ? https : forwardedProto === 'https',
      host: first(headers['x-forwarded-host']) ?? host,
    };
  };
}

function first(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  return text?.split(',')[0]?.trim().toLowerCase();
}

/**
 * Throws 403 for a change that a page of another origin requests. Browsers send `sec-fetch-site` or `origin`. A request with neither does not
 * come from a browser, and is left to the checks of session and CSRF token.
 */
export function checkOrigin({ headers }: IncomingMessage, { host }: Outside): void {
  const site = headers['sec-fetch-site'];
  if (site === 'same-origin') return;
  const { origin } = headers;
  if (site === undefined && (origin === undefined || hostOf(origin) === host?.toLowerCase())) return;
  throw new GatewayError('forbidden', "Changes are accepted only from this gateway's own origin.");
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
