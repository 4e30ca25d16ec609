import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import dashboard from '../../../plugins/dashboard/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

const script = 'console.log("the page")\n'.repeat(40);
let folder: string;
let gateway: TestGateway;

function build(where: string): void {
  mkdirSync(join(where, 'assets'), { recursive: true });
  writeFileSync(join(where, 'index.html'), '<!doctype html><title>Sluice</title>');
  writeFileSync(join(where, 'assets', 'index-AbC123.js'), script);
  writeFileSync(join(where, 'assets', 'index-AbC123.js.gz'), gzipSync(script));
  writeFileSync(join(where, 'assets', 'index-AbC123.js.map'), '{}');
}

/** A request whose path is sent as it is written: fetch would tidy it up. */
function fetchPath(
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(gateway.url);
    request({ hostname, port, path, method, headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
      );
    })
      .on('error', reject)
      .end();
  });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-dashboard-'));
  build(join(folder, 'dist'));
  writeFileSync(join(folder, 'secret.html'), 'not for browsers');
  gateway = await startGateway({ plugins: [dashboard({ folder: join(folder, 'dist') })] });
});

afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the page', () => {
  test('is served at /dashboard/, to which /dashboard leads', async () => {
    const short = await fetchPath('/dashboard');
    expect([short.status, short.headers.location]).toEqual([308, '/dashboard/']);
    const page = await fetchPath('/dashboard/');
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.body.toString()).toContain('<title>Sluice</title>');
  });

  test('may load and speak to its own origin alone, and stand in no frame', async () => {
    for (const path of ['/dashboard/', '/dashboard/assets/index-AbC123.js', '/dashboard/nothing']) {
      const { headers } = await fetchPath(path);
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'; base-uri 'none'; form-action 'self'");
      expect(policy).not.toContain('unsafe');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['referrer-policy']).toBe('no-referrer');
    }
  });

  test('is asked for again each time, while files named after their content stay for a year', async () => {
    expect((await fetchPath('/dashboard/')).headers['cache-control']).toBe('no-cache');
    const asset = await fetchPath('/dashboard/assets/index-AbC123.js');
    expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(asset.headers['content-type']).toBe('text/javascript; charset=utf-8');
  });

  test('comes compressed to those that take it', async () => {
    const path = '/dashboard/assets/index-AbC123.js';
    const small = await fetchPath(path, { 'accept-encoding': 'br, gzip;q=0.8' });
    expect(small.headers['content-encoding']).toBe('gzip');
    expect(Number(small.headers['content-length'])).toBe(small.body.length);
    expect(gunzipSync(small.body).toString()).toBe(script);
    for (const header of ['identity', 'gzip;q=0', 'br, gzip; q=0.0', '']) {
      const plain = await fetchPath(path, header === '' ? {} : { 'accept-encoding': header });
      expect(plain.headers['content-encoding']).toBeUndefined();
      expect(plain.body.toString()).toBe(script);
    }
  });

  test('is not sent twice to who has it', async () => {
    const { headers } = await fetchPath('/dashboard/');
    const again = await fetchPath('/dashboard/', { 'if-none-match': String(headers.etag) });
    expect([again.status, again.body.length]).toEqual([304, 0]);
  });

  test('answers HEAD without a body, and other methods with 405', async () => {
    const head = await fetchPath('/dashboard/', {}, 'HEAD');
    expect([head.status, head.body.length]).toEqual([200, 0]);
    const post = await fetchPath('/dashboard/', {}, 'POST');
    expect([post.status, post.headers.allow]).toEqual([405, 'HEAD, GET']);
  });

  test.each([
    '/dashboard/nothing',
    '/dashboard/../secret.html',
    '/dashboard/%2e%2e/secret.html',
    '/dashboard/..%2fsecret.html',
    '/dashboard/assets/../../secret.html',
    '/dashboard//etc/passwd',
    '/dashboard/assets/index-AbC123.js.map',
    '/dashboard/assets/index-AbC123.js.gz',
    '/dashboard/assets',
    '/dashboard/index.html%00.js',
  ])('gives nothing away at %s', async (path) => {
    const { status, body } = await fetchPath(path);
    expect(status).toBe(404);
    expect(body.toString()).not.toContain('not for browsers');
  });
});

test('a page that was not built says what to do, and is there as soon as it is built', async () => {
  const buildFolder = mkdtempSync(join(tmpdir(), 'sluice-dashboard-'));
  const other = await startGateway({ plugins: [dashboard({ folder: join(buildFolder, 'dist') })] });
  try {
    const before = await fetch(`${other.url}/dashboard/`);
    expect(before.status).toBe(503);
    expect(await before.text()).toContain('npm run build');
    build(join(buildFolder, 'dist'));
    expect((await fetch(`${other.url}/dashboard/`)).status).toBe(200);
  } finally {
    await other.close();
    rmSync(buildFolder, { recursive: true, force: true });
  }
});

test('without the plugin there is no page', async () => {
  const other = await startGateway({ plugins: [dashboard.off()] });
  try {
    expect((await fetch(`${other.url}/dashboard/`)).status).toBe(404);
  } finally {
    await other.close();
  }
});
