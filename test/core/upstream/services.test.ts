import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openServices } from '../../../core/upstream/services.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

const services = openServices();
let service: ScriptedUpstream;

beforeAll(async () => {
  service = await startUpstream(({ method, url, headers, body }, response) => {
    if (url === '/silent') return;
    response.writeHead(url === '/missing' ? 404 : 200, { 'x-kind': 'echo' });
    if (url === '/long') response.end('x'.repeat(2_000));
    else if (url?.startsWith('/bytes/') === true) response.end(Buffer.alloc(Number(url.slice(7))));
    else
      response.end(
        JSON.stringify({ method, url, type: headers['content-type'] ?? null, body: body.toString() }),
      );
  });
});
afterAll(async () => {
  await services.close();
  await service.close();
});

describe('a service that an operator has named', () => {
  test('is asked with JSON, with a body as it is, or with none', async () => {
    const response = await services.ask({ url: `${service.url}/check?a=b`, json: { text: 'hé' } });
    expect(response).toMatchObject({ status: 200, headers: { 'x-kind': 'echo' } });
    expect(response.json()).toEqual({
      method: 'POST',
      url: '/check?a=b',
      type: 'application/json',
      body: '{"text":"hé"}',
    });
    const put = await services.ask({
      url: service.url,
      method: 'PUT',
      body: 'plain',
      headers: { 'content-type': 'text/plain' },
    });
    expect(put.json()).toMatchObject({ method: 'PUT', type: 'text/plain', body: 'plain' });
    expect((await services.ask({ url: service.url })).json()).toMatchObject({ method: 'GET', body: '' });
  });

  test('may answer with any status', async () => {
    expect((await services.ask({ url: `${service.url}/missing` })).status).toBe(404);
  });

  test('is given up on when it is silent, when it says too much, and when nobody waits for it any more', async () => {
    const { host } = new URL(service.url);
    await expect(services.ask({ url: `${service.url}/silent`, timeout: 50 })).rejects.toThrow(
      `The service at ${host} could not be reached: it did not respond within 50 ms.`,
    );
    await expect(services.ask({ url: `${service.url}/long`, limit: 1_000 })).rejects.toThrow(
      'The upstream sent more than 1000 bytes',
    );
    expect((await services.ask({ url: `${service.url}/long`, limit: 2_000 })).text()).toHaveLength(2_000);
    const aborted = AbortSignal.abort(new Error('the call has ended'));
    await expect(services.ask({ url: `${service.url}/silent`, signal: aborted })).rejects.toThrow(
      'the call has ended',
    );
    const { closed } = service.requests.findLast(({ url }) => url === '/silent') ?? {};
    await closed;
  });

  test('gets a body as it is, which the JSON beside it does not replace, and the headers of the plugin', async () => {
    const both = await services.ask({ url: service.url, json: { a: 1 }, body: 'plain' });
    expect(both.json()).toMatchObject({ method: 'POST', type: null, body: 'plain' });
    const named = await services.ask({
      url: service.url,
      json: { a: 1 },
      headers: { 'content-type': 'application/vnd.own+json' },
    });
    expect(named.json()).toMatchObject({ type: 'application/vnd.own+json', body: '{"a":1}' });
    const empty = await services.ask({ url: service.url, json: null });
    expect(empty.json()).toMatchObject({ method: 'POST', body: 'null' });
  });

  test('answers with at most four MiB, unless a plugin says otherwise', async () => {
    const most = 4 * 1024 * 1024;
    expect((await services.ask({ url: `${service.url}/bytes/${most}` })).bytes).toHaveLength(most);
    const { host } = new URL(service.url);
    await expect(services.ask({ url: `${service.url}/bytes/${most + 1}` })).rejects.toThrow(
      new Error(
        `The service at ${host} could not be reached: The upstream sent more than ${most} bytes, the limit for this response.`,
      ),
    );
    const more = await services.ask({ url: `${service.url}/bytes/${most + 1}`, limit: most + 1 });
    expect(more.bytes).toHaveLength(most + 1);
  });

  test('that nobody waits for is told by the reason, whatever it is', async () => {
    const failure = services.ask({ url: `${service.url}/silent`, signal: AbortSignal.abort('enough') });
    await expect(failure).rejects.toThrow(/could not be reached: enough\.$/);
    const going = new AbortController();
    const pending = services.ask({ url: `${service.url}/silent`, signal: going.signal });
    going.abort(new Error('The call has ended.'));
    await expect(pending).rejects.toThrow(/could not be reached: The call has ended\.$/);
  });

  test('that is not there is named by its host alone', async () => {
    const gone = await startUpstream(() => {});
    await gone.close();
    const failure = await services
      .ask({ url: `${gone.url}/secret?token=abc` })
      .catch((error: Error) => error.message);
    expect(failure).toContain(`The service at ${new URL(gone.url).host} could not be reached`);
    expect(failure).not.toMatch(/secret|abc/);
    await expect(services.ask({ url: 'file:///etc/hosts' })).rejects.toThrow('an http or https URL');
  });

  test('is read as it comes, for as long as its reader stays', async () => {
    let leavers = 0;
    const endless = await startUpstream((request, response) => {
      if (request.url === '/silent') return;
      response.writeHead(206, { 'x-kind': 'endless' });
      const timer = setInterval(() => response.write('tick '), 5);
      response.on('close', () => {
        clearInterval(timer);
        leavers += 1;
      });
    });
    const stream = await services.open({ url: endless.url, json: {} });
    expect(stream).toMatchObject({ status: 206, headers: { 'x-kind': 'endless' } });
    let text = '';
    for await (const chunk of stream.body) {
      text += chunk.toString();
      if (text.length > 20) break;
    }
    expect(text).toMatch(/^(tick )+$/);
    await expect.poll(() => leavers).toBe(1);
    await expect(services.open({ url: `${endless.url}/silent`, timeout: 50 })).rejects.toThrow(
      `The service at ${new URL(endless.url).host} could not be reached: it did not respond within 50 ms.`,
    );
    const left = new AbortController();
    const other = await services.open({ url: endless.url, signal: left.signal });
    left.abort(new Error('enough'));
    await expect(Array.fromAsync(other.body)).rejects.toThrow('enough');
    await expect.poll(() => leavers).toBe(2);
    (await services.open({ url: endless.url })).close();
    await expect.poll(() => leavers).toBe(3);
    await endless.close();
  });
});
