/** Answers requests below `/dashboard` with files of the built page, compressed where the browser takes that, and with the headers that protect it. */
import type { RouteContext } from 'sluice';
import type { Page, PageFile } from './page.ts';

/** Content security policy: only resources of this origin may run or load, and no page may embed the dashboard in a frame. */
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

/** Returns the headers that every answer below `/dashboard` carries. */
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

/** Page that a browser gets when the dashboard's page is not built. */
export const nothingBuilt = html(
  'The dashboard is not built',
  'Run <code>npm run build</code> in the folder of Sluice, then load this page again. The gateway and its admin API work without it.',
);

const notFound = html('Not found', 'There is nothing here. <a href="/dashboard/">To the dashboard</a>');

/** Answers a GET or HEAD below `/dashboard` from the page; undefined is a page that was not built. */
export function answerWith(page: Page | undefined, ctx: RouteContext): void {
  // Uses the URL of the request, because Koa's own path of `//etc` is that of a host.
  const [path = ''] = (ctx.req.url ?? '').split('?', 1);
  if (path === '/dashboard') {
    // Relative addresses of the page begin at the slash.
    ctx.status = 308;
    ctx.set(pageHeaders('text/plain; charset=utf-8'));
    ctx.redirect('/dashboard/');
    return;
  }
  ctx.set(pageHeaders('text/html; charset=utf-8'));
  if (page === undefined) {
    ctx.status = 503;
    ctx.set('cache-control', 'no-store');
    ctx.body = nothingBuilt;
    return;
  }
  const name = path.slice('/dashboard/'.length);
  const file = page.get(name === '' ? 'index.html' : name);
  if (file === undefined) {
    ctx.status = 404;
    ctx.body = notFound;
  } else send(file, ctx);
}

function send(file: PageFile, ctx: RouteContext): void {
  ctx.status = 200;
  ctx.set('content-type', file.type);
  if (file.hashed) ctx.set('cache-control', 'public, max-age=31536000, immutable');
  ctx.etag = file.etag;
  ctx.vary('accept-encoding');
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  const compressed = file.gzip !== undefined && takesGzip(ctx.headers['accept-encoding']);
  if (compressed) ctx.set('content-encoding', 'gzip');
  ctx.body = compressed ? file.gzip : file.bytes;
}

/** Returns true if the client accepts gzip. `gzip;q=0` forbids it. */
function takesGzip(header: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:\s*(?:,|$)))/i.test(String(header ?? ''));
}
