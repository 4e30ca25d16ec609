import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import sapAiCore from '../../channels/sap-ai-core.ts';
import { voices } from '../flows/_wire.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startTokenPlace, type TokenPlace } from './_tokens.ts';

type Json = Record<string, unknown>;

const secret = 'AbCdEf123456+ghIjKl==';
let tokens: TokenPlace;
let upstream: ScriptedUpstream;
let gateway: TestGateway;

const deployment = (id: string, name: string, spelled = 'backend_details'): Json => ({
  id,
  status: 'RUNNING',
  scenarioId: 'foundation-models',
  details: { resources: { backendDetails: {}, [spelled]: { model: { name, version: 'latest' } } } },
});

const serviceKey = (): string =>
  JSON.stringify({
    clientid: 'sb-abc!a1|aicore!b1',
    clientsecret: secret,
    url: tokens.url,
    serviceurls: { AI_API_URL: upstream.url },
  });

beforeAll(async () => {
  tokens = await startTokenPlace();
  upstream = await startUpstream((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const deployments = [
      deployment('d-gpt', 'gpt-4o-mini'),
      deployment('d-mistral', 'mistralai--mistral-large-instruct', 'backendDetails'),
    ];
    response.end(
      JSON.stringify(
        request.method === 'GET'
          ? { count: 2, resources: deployments }
          : voices['chat-completions'].whole('hello'),
      ),
    );
  });
  gateway = await startGateway({
    channels: [
      sapAiCore({ serviceKey: serviceKey(), resourceGroup: 'mine', models: ['gpt-*', 'mistralai--*'] }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
  await tokens.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
  tokens.refuses = undefined;
});

const ask = (model: string, at = gateway): Promise<Response> =>
  fetch(`${at.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${at.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
  });

test('a model is asked at the deployment that runs it, in its resource group, with a token of the service key', async () => {
  for (const [model, url] of [
    ['gpt-4o-mini', '/v2/inference/deployments/d-gpt/chat/completions?api-version=2024-10-21'],
    ['mistralai--mistral-large-instruct', '/v2/inference/deployments/d-mistral/chat/completions'],
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect((await ask(model)).status).toBe(200);
    const seen = upstream.requests.findLast(({ method }) => method === 'POST');
    expect(seen?.url).toBe(url);
    expect(seen?.headers).toMatchObject({ authorization: 'Bearer token-1', 'ai-resource-group': 'mine' });
  }
  expect(tokens.requests).toHaveLength(1);
  expect(tokens.requests[0]?.url).toBe('/oauth/token');
  expect(Object.fromEntries(new URLSearchParams(String(tokens.requests[0]?.body)))).toEqual({
    grant_type: 'client_credentials',
    client_id: 'sb-abc!a1|aicore!b1',
    client_secret: secret,
  });
  const lists = upstream.requests.filter(({ method }) => method === 'GET');
  expect(lists).toHaveLength(1);
  expect(lists[0]?.url).toBe('/v2/lm/deployments?scenarioId=foundation-models&status=RUNNING');
  expect(lists[0]?.headers['ai-resource-group']).toBe('mine');
});

test('a model that no deployment runs is not available', async () => {
  const answer = await ask('gpt-9');
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: { message: 'No deployment runs this model.' } });
});

test('the models of running deployments are discovered', async () => {
  const own = await startGateway({ channels: [sapAiCore({ serviceKey: serviceKey() })] });
  try {
    await expect.poll(async () => (await ask('gpt-4o-mini', own)).status).toBe(200);
  } finally {
    await own.close();
  }
});

test('a service key that is refused is named in the log, and its secret nowhere', async () => {
  tokens.refuses = { status: 401, body: { error: 'unauthorized', error_description: secret } };
  const own = await startGateway({
    channels: [sapAiCore({ serviceKey: serviceKey(), models: ['gpt-*'] })],
  });
  try {
    expect((await ask('gpt-4o-mini', own)).status).toBe(502);
    expect(own.lines).toContainEqual(
      expect.objectContaining({
        msg: expect.stringMatching(/^SAP’s authorization server gave no access token .* status 401\. Check/),
      }),
    );
    expect(JSON.stringify(own.lines)).not.toContain(secret);
  } finally {
    await own.close();
  }
});

test('a service key that is none is refused when it is configured', async () => {
  await expect(startGateway({ channels: [sapAiCore({ serviceKey: '{"clientid":"x"}' })] })).rejects.toThrow(
    /serviceKey/,
  );
  await expect(startGateway({ channels: [sapAiCore()] })).rejects.toThrow(/serviceKey is missing/);
});
