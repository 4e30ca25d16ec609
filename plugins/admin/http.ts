import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from 'sluice';
import { addressList, plainAddress, toGatewayError, type Log } from 'sluice/internal';
import { lifetime } from './sessions.ts';

/** On every answer: none is kept, none is taken for something else, and nothing of it goes to others. */
const securityHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const;

const cookieName = 'sluice-session';

/** Puts the headers that every answer has. */
export function secure(response: ServerResponse): void {
  for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value);
}

/** Answers with JSON. */
export function answer(response: ServerResponse, status: number, value: object): void {
  const text = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

/** Answers with what went wrong, or cuts off an answer that has begun. What is no refusal is told to the log alone. */
export function refuse(request: IncomingMessage, response: ServerResponse, thrown: unknown, log: Log): void {
  const error = toGatewayError(thrown);
  if (error.code === 'internal_error') log.error({ error: error.cause ?? error }, 'an admin request failed');
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
  if (error.retryAfter !== undefined) response.setHeader('retry-after', Math.ceil(error.retryAfter));
  if (!request.complete) dropTheRest(request, response);
  const { code, param } = error;
  const message = code === 'internal_error' ? 'The gateway failed at this: its log says why.' : error.message;
  answer(response, error.status, {
    error: param === undefined ? { code, message } : { code, message, param },
  });
}

/** What is still being sent is read and dropped for a moment: closing at once would take the answer along. */
function dropTheRest(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('connection', 'close');
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), 2000);
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}

/** The token in a request's session cookie. */
export function sessionToken({ headers }: IncomingMessage): string | undefined {
  for (const pair of headers.cookie?.split(';') ?? []) {
    const [name, value] = pair.split('=', 2);
    if (name?.trim() === cookieName) return value?.trim();
  }
  return undefined;
}

/** Sets the session cookie, or takes it away. */
export function setSessionCookie(
  response: ServerResponse,
  token: string | undefined,
  overHttps: boolean,
): void {
  const age = token === undefined ? 0 : lifetime / 1000;
  const flags = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${age}${overHttps ? '; Secure' : ''}`;
  response.setHeader('set-cookie', `${cookieName}=${token ?? ''}; ${flags}`);
}

/** What a trusted proxy says of the connection that it has taken. */
export interface Outside {
  /** Whether the browser's connection is encrypted. */
  readonly https: boolean;
  /** The host that the browser asked. */
  readonly host: string | undefined;
}

/** Reads how a request looks from outside the proxies that are trusted. */
export function createOutside(trustedProxies: readonly string[]): (request: IncomingMessage) => Outside {
  const trusted = addressList(trustedProxies);
  return ({ socket, headers }) => {
    const https = 'encrypted' in socket && socket.encrypted === true;
    const { host } = headers;
    if (!trusted.has(plainAddress(socket.remoteAddress ?? ''))) return { https, host };
    const told = first(headers['x-forwarded-proto']);
    return {
      https: told === undefined ? https : told === 'https',
      host: first(headers['x-forwarded-host']) ?? host,
    };
  };
}

function first(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  return text?.split(',')[0]?.trim().toLowerCase();
}

/**
 * 403 for a change that a page of somebody else asks for. Browsers say where a request comes from; what says nothing is no browser, and
 * is let through to where its session and its token are asked for.
 */
export function checkOrigin({ headers }: IncomingMessage, { host }: Outside): void {
  const site = headers['sec-fetch-site'];
  if (site === 'same-origin') return;
  const { origin } = headers;
  if (site === undefined && (origin === undefined || hostOf(origin) === host?.toLowerCase())) return;
  throw new GatewayError(
    'forbidden',
    "Changes are taken from this gateway's own pages alone, not from another origin.",
  );
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
