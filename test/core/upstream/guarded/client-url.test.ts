import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createFetchClientUrl } from '../../../../core/upstream/guarded/client-url.ts';
import { eventually } from '../../../support/eventually.ts';

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const closed: string[] = [];
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.on('close', () => closed.push(request.url ?? ''));
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, requests, closed };
}

const open = createFetchClientUrl({ enabled: true, allow: ['127.0.0.1'] });

/** Nothing but the public internet, where names lead to these addresses. */
const guarded = (names: Readonly<Record<string, readonly string[]>> = {}) =>
  createFetchClientUrl(
    { enabled: true, allow: [] },
    { resolve: (name) => ({ addresses: Promise.resolve(names[name] ?? []), cancel() {} }) },
  );

describe('a request of a plugin to a URL that a client gave', () => {
  test('sends method, headers and body, and returns the response as it comes', async () => {
    const { url } = await serve((request, response) => {
      request.setEncoding('utf8');
      request.on('data', (body: string) => {
        response.writeHead(201, { 'content-type': 'text/plain', 'x-seen': request.headers['x-own'] ?? '' });
        response.end(`${request.method} ${body} ${request.headers['content-length']}`);
      });
    });
    const response = await open(`${url}/mcp`, {
      method: 'POST',
      headers: { 'x-own': 'yes', host: 'elsewhere.example', 'content-length': '1' },
      body: 'héllo',
    });
    expect([response.status, response.headers.get('x-seen')]).toEqual([201, 'yes']);
    expect(await response.text()).toBe('POST héllo 6');
  });

  test('reaches no private address, whether it is written, resolved or redirected to', async () => {
    const { url, port, requests } = await serve((_request, response) => response.end('secret'));
    const fetch = guarded({ 'inside.example': ['127.0.0.1'], 'both.example': ['8.8.8.8', '10.0.0.1'] });
    for (const target of [
      url,
      `http://[::1]:${port}/`,
      `http://2130706433:${port}/`,
      `http://localhost:${port}/`,
      'http://169.254.169.254/latest/meta-data/',
      'http://metadata.google.internal/',
      `http://inside.example:${port}/`,
      `http://both.example:${port}/`,
    ])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(fetch(target, {})).rejects.toThrow('The address is unreachable or not allowed.');
    expect(requests).toEqual([]);
  });

  test('does not follow a redirect', async () => {
    const { url, requests } = await serve((_request, response) => {
      response.writeHead(302, { location: 'http://169.254.169.254/' });
      response.end();
    });
    const response = await open(url, {});
    expect([response.status, requests]).toEqual([302, ['GET /']]);
  });

  test('refuses other protocols, credentials in the URL, and everything where fetching is off', async () => {
    await expect(open('file:///etc/passwd', {})).rejects.toThrow('must be an http or https URL');
    await expect(open('http://me:secret@example.com/', {})).rejects.toThrow('without a user name');
    const off = createFetchClientUrl({ enabled: false, allow: ['127.0.0.1'] });
    await expect(off('http://127.0.0.1:1/', {})).rejects.toThrow('allowed by the settings');
  });

  test('fails where the body is longer than allowed, and lets go of the connection', async () => {
    const { url, closed } = await serve((_request, response) => {
      response.write('x'.repeat(3_000));
    });
    const response = await open(`${url}/long`, { maxBytes: 2_000 });
    await expect(response.text()).rejects.toThrow('more than 2000 bytes');
    await eventually(() => expect(closed).toEqual(['/long']));
  });

  test('ends with its signal, before the head and in the middle of the body', async () => {
    const { url, requests, closed } = await serve((request, response) => {
      if (request.url === '/half') response.write('half');
    });
    const before = new AbortController();
    const waiting = open(`${url}/never`, { signal: before.signal });
    await eventually(() => expect(requests).toEqual(['GET /never']));
    before.abort();
    await expect(waiting).rejects.toThrow('socket hang up');
    const within = new AbortController();
    const response = await open(`${url}/half`, { signal: within.signal });
    within.abort();
    await expect(response.text()).rejects.toThrow('aborted');
    await eventually(() => expect(closed).toContain('/half'));
  });

  test('gives up where no head comes in time', async () => {
    const { url, closed } = await serve(() => {});
    await expect(open(`${url}/late`, { timeoutMs: 50 })).rejects.toThrow('socket hang up');
    await eventually(() => expect(closed).toEqual(['/late']));
  });
});
