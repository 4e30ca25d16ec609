import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Page, PageFile } from './page.ts';

/** Nothing but what this origin serves may run, load, or be spoken to, and nobody may put the page into a frame. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ');

/** The headers that every answer below `/dashboard` carries. */
export function pageHeaders(type: string): Record<string, string> {
  return {
    'content-type': type,
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=()',
    'cache-control': 'no-cache',
  };
}

const html = (title: string, text: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${text}</p></html>\n`;

/** What a browser is shown when there is no page to serve. */
export const nothingBuilt = html(
  'The dashboard is not built',
  'Run <code>npm run build</code> in the folder of Sluice, then load this page again. The gateway and its admin API work without it.',
);

const notFound = html('Not found', 'There is nothing here. <a href="/dashboard/">To the dashboard</a>');

/** Answers a GET or HEAD below `/dashboard` from the page; undefined is a page that was not built. */
export function answerWith(page: Page | undefined, request: IncomingMessage, response: ServerResponse): void {
  const [path = ''] = (request.url ?? '').split('?', 1);
  if (path === '/dashboard') {
    // Relative addresses of the page begin at the slash.
    response.writeHead(308, { ...pageHeaders('text/plain; charset=utf-8'), location: '/dashboard/' }).end();
    return;
  }
  const text = pageHeaders('text/html; charset=utf-8');
  if (page === undefined) {
    response.writeHead(503, { ...text, 'cache-control': 'no-store' }).end(nothingBuilt);
    return;
  }
  const name = path.slice('/dashboard/'.length);
  const file = page.get(name === '' ? 'index.html' : name);
  if (file === undefined) response.writeHead(404, text).end(notFound);
  else send(file, request, response);
}

function send(file: PageFile, request: IncomingMessage, response: ServerResponse): void {
  const headers = {
    ...pageHeaders(file.type),
    ...(file.hashed && { 'cache-control': 'public, max-age=31536000, immutable' }),
    etag: file.etag,
    vary: 'accept-encoding',
  };
  if (request.headers['if-none-match']?.includes(file.etag) === true) {
    response.writeHead(304, headers).end();
    return;
  }
  const compressed = file.gzip !== undefined && takesGzip(request.headers['accept-encoding']);
  const body = compressed ? (file.gzip ?? file.bytes) : file.bytes;
  response.writeHead(200, {
    ...headers,
    ...(compressed && { 'content-encoding': 'gzip' }),
    'content-length': body.length,
  });
  response.end(body);
}

/** `gzip;q=0` forbids it. */
function takesGzip(header: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*(?:,|$)))/i.test(String(header ?? ''));
}
