import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import watsonx from '../../channels/watsonx/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startTokenServer, type TokenServer } from './_tokens.ts';

type Json = Record<string, unknown>;

const key = 'ibm-api-key-0123456789';
let tokens: TokenServer;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
let answer: Json = {};

beforeAll(async () => {
  tokens = await startTokenServer();
  upstream = await startUpstream((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify(
        request.method === 'GET'
          ? { resources: [{ model_id: 'ibm/granite-4-h-small' }, { model_id: 'openai/gpt-oss-120b' }] }
          : answer,
      ),
    );
  });
  gateway = await startGateway({
    channels: [
      watsonx({ key, project: 'p-1', tokenUrl: `${tokens.url}/identity/token`, baseUrl: upstream.url }),
      watsonx({
        id: 'listed',
        key: 'ibm-api-key-of-the-other',
        space: 's-1',
        tokenUrl: `${tokens.url}/identity/token`,
        baseUrl: upstream.url,
        models: 'discover',
      }),
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

/** Returns requests to models, without those for the list of models. */
const posted = (): typeof upstream.requests => upstream.requests.filter(({ method }) => method === 'POST');

const post = (path: string, body: Json, at = gateway): Promise<Response> =>
  fetch(at.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${at.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const chatReply = {
  id: 'chat-1',
  model_id: 'ibm/granite-4-h-small',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { completion_tokens: 2, prompt_tokens: 9, total_tokens: 11 },
};

test('an API key is changed for a token once, and a project pays', async () => {
  answer = chatReply;
  const body = {
    model: 'ibm/granite-4-h-small',
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    tool_choice: 'auto',
    time_limit: 1000,
  };
  const first = await post('/v1/chat/completions', body);
  expect({ status: first.status, body: await first.json() }).toMatchObject({
    status: 200,
    body: { choices: [{ message: { content: 'Hello.' } }], usage: { prompt_tokens: 9 } },
  });
  expect((await post('/v1/chat/completions', body)).status).toBe(200);
  const tokenRequests = tokens.requests.filter((request) => request.body.includes(key));
  expect(tokenRequests).toHaveLength(1);
  expect(String(tokenRequests[0]?.body)).toBe(
    `grant_type=urn%3Aibm%3Aparams%3Aoauth%3Agrant-type%3Aapikey&apikey=${key}`,
  );
  const [seen] = posted();
  expect(seen?.url).toMatch(/^\/ml\/v1\/text\/chat\?version=\d{4}-\d{2}-\d{2}$/);
  expect(seen?.headers['authorization']).toMatch(/^Bearer token-\d$/);
  const sent = JSON.parse(String(seen?.body)) as Json;
  expect(sent).toMatchObject({
    model_id: 'ibm/granite-4-h-small',
    project_id: 'p-1',
    tool_choice_option: 'auto',
    time_limit: 1000,
  });
  expect(sent).not.toHaveProperty('model');
  expect(sent).not.toHaveProperty('stream');
});

test('a model that thinks is asked how much, and what it thought is reasoning', async () => {
  const message = { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.' };
  answer = { ...chatReply, choices: [{ index: 0, message, finish_reason: 'stop' }] };
  const response = await post('/v1/chat/completions', {
    model: 'openai/gpt-oss-120b',
    reasoning_effort: 'high',
    include_reasoning: true,
    messages: [{ role: 'user', content: 'hi' }],
  });
  expect(await response.json()).toMatchObject({
    choices: [{ message: { content: 'Yes.', reasoning_content: 'Hm.' } }],
  });
  const sent = JSON.parse(String(posted()[0]?.body)) as Json;
  expect(sent).toMatchObject({ reasoning_effort: 'high', include_reasoning: true });
});

test('embeddings and rerank', async () => {
  answer = {
    model_id: 'ibm/slate',
    results: [{ embedding: [0.5, 0.25] }, { embedding: [1, 2] }],
    input_token_count: 10,
  };
  const vectors = await post('/v1/embeddings', { model: 'ibm/slate', input: ['a', 'b'] });
  expect(await vectors.json()).toMatchObject({
    data: [{ embedding: [0.5, 0.25] }, { embedding: [1, 2] }],
    usage: { prompt_tokens: 10 },
  });
  expect(JSON.parse(String(posted()[0]?.body))).toEqual({
    model_id: 'ibm/slate',
    inputs: ['a', 'b'],
    project_id: 'p-1',
  });
  answer = {
    model_id: 'ibm/slate',
    results: [
      { index: 1, score: 3.5 },
      { index: 0, score: -2 },
    ],
    input_token_count: 7,
  };
  const ranked = await post('/v1/rerank', {
    model: 'ibm/slate',
    query: 'q',
    documents: ['x', 'y'],
    top_n: 2,
  });
  expect(await ranked.json()).toMatchObject({ results: [{ index: 1, relevance_score: 3.5 }, { index: 0 }] });
  expect(JSON.parse(String(posted()[1]?.body))).toMatchObject({
    query: 'q',
    inputs: [{ text: 'x' }, { text: 'y' }],
    parameters: { return_options: { top_n: 2 } },
  });
});

test('the models of the region are listed', async () => {
  answer = chatReply;
  await expect
    .poll(async () => {
      const list = await fetch(`${gateway.url}/v1/models`, {
        headers: { authorization: `Bearer ${gateway.key}` },
      });
      return ((await list.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    })
    .toContain('openai/gpt-oss-120b');
});

test('a key that IAM refuses is named in the log with what to do, and shown nowhere', async () => {
  tokens.refuses = { status: 400, body: { errorMessage: `Provided API key could not be found: ${key}` } };
  const own = await startGateway({
    channels: [
      watsonx({ key, project: 'p-1', tokenUrl: `${tokens.url}/identity/token`, baseUrl: upstream.url }),
    ],
  });
  try {
    const refused = await post(
      '/v1/chat/completions',
      { model: 'ibm/granite-4-h-small', messages: [{ role: 'user', content: 'hi' }] },
      own,
    );
    expect(refused.status).toBe(502);
    expect(await refused.json()).toMatchObject({
      error: { message: 'The channel for this model has no valid credentials.' },
    });
    expect(own.lines).toContainEqual(
      expect.objectContaining({
        msg: expect.stringMatching(
          /^IBM Cloud IAM returned no access token for the API key .* status 400: .*\. Check/,
        ),
      }),
    );
    expect(JSON.stringify(own.lines)).not.toContain(key);
  } finally {
    await own.close();
  }
});

test('a channel without a project, or with two owners, is refused when it is configured', async () => {
  for (const owners of [{}, { project: 'p', space: 's' }]) {
    // oxlint-disable-next-line no-await-in-loop -- one gateway after the other
    await expect(startGateway({ channels: [watsonx({ key, ...owners })] })).rejects.toThrow(
      /project (is missing|and space are both given)/,
    );
  }
});
