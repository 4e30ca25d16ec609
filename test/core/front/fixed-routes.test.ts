import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';
import { voices } from '../../flows/_wire.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    const reply = voices['chat-completions'].whole('fine');
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  });
  gateway = await startGateway({ channels: [voices['chat-completions'].channel(upstream.url)] });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Returns the response without ids and times, to compare both ways in which a route is found. */
async function seen(path: string, method: string, body: string): Promise<object> {
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    ...(method === 'GET' ? {} : { body }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: [...response.headers.keys()].toSorted(),
    text: text.replaceAll(/(req_|chatcmpl-)[\w-]+/g, '$1').replaceAll(/"created": ?\d+/g, '"created"'),
  };
}

test.each([
  ['an answer', 200, 'POST', '{"model":"via-chat","messages":[{"role":"user","content":"Hi"}]}'],
  ['a refusal of what is asked', 400, 'POST', '{"model":"via-chat"}'],
  ['a refusal of what is no JSON', 400, 'POST', '{'],
  ['a refusal of the method', 405, 'GET', ''],
])('%s is the same whether or not the address has a query', async (_what, status, method, body) => {
  const path = '/v1/chat/completions';
  const found = await seen(path, method, body);
  expect(found).toMatchObject({ status });
  expect(found).toEqual(await seen(`${path}?from=here`, method, body));
});
