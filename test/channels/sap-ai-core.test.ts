import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import sapAiCore from '../../channels/sap-ai-core/index.ts';
import { voices } from '../flows/_wire.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startTokenServer, type TokenServer } from './_tokens.ts';

type Json = Record<string, unknown>;
type Key = Exclude<NonNullable<Parameters<typeof sapAiCore>[0]>['serviceKey'], string | undefined>;
let refuses: number | undefined;

const secret = 'AbCdEf123456+ghIjKl==';
let tokens: TokenServer;
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
  tokens = await startTokenServer();
  upstream = await startUpstream((request, response) => {
    const status = request.method === 'GET' ? 200 : (refuses ?? 200);
    response.writeHead(status, { 'content-type': 'application/json' });
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

const sendChat = (model: string, at = gateway): Promise<Response> =>
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
    expect((await sendChat(model)).status).toBe(200);
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

describe('the orchestration service', () => {
  let service: ScriptedUpstream;
  let orchestrated: TestGateway;
  const result = (finalResult: Json): Json => ({
    request_id: 'r',
    intermediate_results: {},
    final_result: finalResult,
  });
  const whole = result(voices['chat-completions'].whole('hello'));
  let answer: { readonly status: number; readonly body: string; readonly type: string };
  const well = { status: 200, body: JSON.stringify(whole), type: 'application/json' };

  beforeAll(async () => {
    answer = well;
    service = await startUpstream(({ method, url }, response) => {
      const lists: readonly (readonly [string, Json])[] = [
        ['scenarioId=orchestration', { resources: [{ id: 'd-all', details: { resources: {} } }] }],
        [
          '/scenarios/foundation-models/models',
          {
            resources: [
              { model: 'anthropic--claude-4-sonnet', allowedScenarios: [{ scenarioId: 'orchestration' }] },
              { model: 'not-here', allowedScenarios: [{ scenarioId: 'foundation-models' }] },
              { model: 'gemini-2.5-pro' },
            ],
          },
        ],
      ];
      const list = method === 'GET' ? lists.find(([part]) => url.includes(part))?.[1] : undefined;
      response.writeHead(list === undefined ? answer.status : 200, { 'content-type': answer.type });
      response.end(list === undefined ? answer.body : JSON.stringify(list));
    });
    orchestrated = await startGateway({
      channels: [
        sapAiCore({
          serviceKey: {
            ...(JSON.parse(serviceKey()) as never as Key),
            serviceurls: { AI_API_URL: service.url },
          },
          orchestration: { filtering: { input: { filters: [] } } },
        }),
      ],
    });
    // The models are asked for in the background.
    await eventually(async () => {
      const { status } = await sendChat('gemini-2.5-pro', orchestrated);
      if (status === 503) throw new Error('not listed yet');
    });
  });
  afterAll(async () => {
    await orchestrated.close();
    await service.close();
  });
  beforeEach(() => {
    answer = well;
  });

  const sendChatBody = (body: Json): Promise<Response> =>
    fetch(`${orchestrated.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${orchestrated.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'anthropic--claude-4-sonnet',
        messages: [{ role: 'user', content: 'hi' }],
        ...body,
      }),
    });

  test('is asked for every model at its one deployment, with the modules of the operator', async () => {
    const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
    const reply = await sendChatBody({ tools: [tool], tool_choice: 'auto', temperature: 0.5, max_tokens: 9 });
    expect(await reply.json()).toMatchObject({ choices: [{ message: { content: 'hello' } }] });
    const seen = service.requests.findLast(({ method }) => method === 'POST');
    expect(seen?.url).toBe('/v2/inference/deployments/d-all/v2/completion');
    expect(JSON.parse(String(seen?.body))).toEqual({
      config: {
        modules: {
          filtering: { input: { filters: [] } },
          prompt_templating: {
            prompt: { template: [{ role: 'user', content: 'hi' }], tools: [tool] },
            model: {
              name: 'anthropic--claude-4-sonnet',
              params: { tool_choice: 'auto', temperature: 0.5, max_tokens: 9 },
            },
          },
        },
      },
    });
  });

  test('takes what looks like a placeholder in a message as it was written', async () => {
    await sendChatBody({ messages: [{ role: 'user', content: 'Explain {{?name}} and {{ ?other }}.' }] });
    const sent = JSON.parse(String(service.requests.at(-1)?.body)) as Json;
    expect(sent['placeholder_values']).toEqual({ name: '{{?name}}', other: '{{ ?other }}' });
  });

  test('names the models that it reaches', async () => {
    const list = await fetch(`${orchestrated.url}/v1/models`, {
      headers: { authorization: `Bearer ${orchestrated.key}` },
    });
    const { data } = (await list.json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id).toSorted()).toEqual(['anthropic--claude-4-sonnet', 'gemini-2.5-pro']);
  });

  test('refuses what its filter finds, and the client is told so', async () => {
    const error = {
      request_id: 'r',
      code: 400,
      message: 'Content filtered due to safety violations. Please modify the prompt and try again.',
      location: 'Filtering Module - Input Filter',
    };
    answer = { status: 400, body: JSON.stringify({ error }), type: 'application/json' };
    const reply = await sendChatBody({});
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({
      error: {
        code: 'content_policy_violation',
        message: expect.stringContaining('Content filtered due to safety violations'),
      },
    });
  });

  test('tells of the first model that failed, where several were asked in turn', async () => {
    const error = [
      { request_id: 'r', code: 400, message: 'temperature is too high.', location: 'LLM Module' },
      { request_id: 'r', code: 500, message: 'Something else.', location: 'LLM Module' },
    ];
    answer = { status: 200, body: JSON.stringify({ error }), type: 'application/json' };
    const reply = await sendChatBody({});
    expect({ status: reply.status, body: await reply.json() }).toMatchObject({
      status: 400,
      body: { error: { message: 'temperature is too high.' } },
    });
  });

  test('breaks a stream with an error of the client’s format', async () => {
    const begun = result({
      id: '',
      object: '',
      created: 0,
      model: '',
      choices: [{ index: 0, delta: { content: '' } }],
    });
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
    const delta = result({ ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' } }] });
    const failed = {
      error: { request_id: 'r', code: 500, message: 'The model has failed.', location: 'LLM Module' },
    };
    const body = [begun, delta, failed].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    answer = { status: 200, body, type: 'text/event-stream' };
    const text = await (await sendChatBody({ stream: true })).text();
    expect(text).toContain('"Hel"');
    expect(text).toMatch(/data: \{"error":/);
    expect(text).not.toContain('[DONE]');
  });
});

test('an instance that the service key does not open is told with what to do', async () => {
  refuses = 403;
  const own = await startGateway({
    channels: [sapAiCore({ serviceKey: serviceKey(), models: ['gpt-*'] })],
  });
  try {
    expect((await sendChat('gpt-4o-mini', own)).status).toBe(502);
    expect(own.lines).toContainEqual(
      expect.objectContaining({
        msg: expect.stringMatching(
          /^SAP AI Core refused the identity of the channel \(status 403\)\. Check that/,
        ),
      }),
    );
  } finally {
    refuses = undefined;
    await own.close();
  }
});

test('a model that no deployment runs is not available', async () => {
  const answer = await sendChat('gpt-9');
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: { message: 'No deployment runs this model.' } });
});

test('the models of running deployments are discovered', async () => {
  const own = await startGateway({ channels: [sapAiCore({ serviceKey: serviceKey() })] });
  try {
    await expect.poll(async () => (await sendChat('gpt-4o-mini', own)).status).toBe(200);
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
    expect((await sendChat('gpt-4o-mini', own)).status).toBe(502);
    expect(own.lines).toContainEqual(
      expect.objectContaining({
        msg: expect.stringMatching(
          /^SAP’s authorization server returned no access token .* status 401: .*\. Check/,
        ),
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

describe.each([false, true])('thoughts of the orchestration service, streamed: %s', (stream) => {
  test('reach clients, who got a list of blocks', async () => {
    const blocks = [{ content: 'Let me ', signature: 's' }, { content: 'see.' }];
    const base = { id: 'c', created: 1, model: 'gpt-test' };
    const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
    const message = { role: 'assistant', content: 'Hi.', reasoning_content: blocks };
    const pieces = [
      { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta: message }] },
      {
        ...base,
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta: { content: '' }, finish_reason: 'stop' }],
        usage,
      },
    ];
    const whole = {
      ...base,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage,
    };
    const there = await startUpstream((request, response) => {
      const isList = request.method === 'GET';
      response.writeHead(200, {
        'content-type': stream && !isList ? 'text/event-stream' : 'application/json',
      });
      if (isList) response.end(JSON.stringify({ resources: [{ id: 'd-all', details: {} }] }));
      else if (stream)
        response.end(
          pieces.map((piece) => `data: ${JSON.stringify({ final_result: piece })}\n\n`).join('') +
            'data: [DONE]\n\n',
        );
      else response.end(JSON.stringify({ final_result: whole }));
    });
    const own = await startGateway({
      channels: [
        sapAiCore({
          orchestration: true,
          models: ['gpt-test'],
          serviceKey: {
            clientid: 'c',
            clientsecret: 'secret-of-the-client',
            url: tokens.url,
            serviceurls: { AI_API_URL: there.url },
          },
        }),
      ],
    });
    try {
      const answer = await fetch(`${own.url}/v1/messages`, {
        method: 'POST',
        headers: {
          'x-api-key': own.key,
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
        },
        body: JSON.stringify({
          model: 'gpt-test',
          max_tokens: 99,
          stream,
          messages: [{ role: 'user', content: 'Hi' }],
        }),
      });
      const text = await answer.text();
      expect(text).toContain('"thinking":"Let me see."');
      expect(text).toContain('Hi.');
    } finally {
      await own.close();
      await there.close();
    }
  });
});
