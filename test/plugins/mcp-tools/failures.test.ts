import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/server';
import { fail, reply, startUpstream, toolCall } from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { eventually } from '../../support/eventually.ts';
import { startMcpServer } from '../../support/mcp/http-server.ts';
import { oddServer } from '../../support/mcp/odd-server.ts';
import { formats, lastResult, startAgent, startWeather, type Agent, type Model } from './_agent.ts';

const mcp = (label: string, url?: string) =>
  ({
    type: 'mcp',
    server_label: label,
    require_approval: 'never',
    ...(url === undefined ? {} : { server_url: url }),
  }) as const;

function openai({ gateway }: Agent): OpenAI {
  return new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
}

/** Calls a tool of the odd server once, and repeats what it gave. */
const calls =
  (name: string, args: object): Model =>
  (request, round) =>
    round === 1 ? reply(toolCall(name, args as never)) : reply(lastResult(request));

async function odd(model: Model, options: object = {}) {
  const server = await startMcpServer(() => oddServer());
  onTestFinished(() => server.close());
  const agent = await startAgent(model, { servers: { odd: { url: server.url } }, ...options });
  const respond = (tools: object[] = [mcp('odd')]) =>
    openai(agent).responses.create({ model: 'of-chat-completions', input: 'Go', tools: tools as never });
  return { agent, server, respond };
}

describe('a tool that', () => {
  test.each([
    ['fails', 'fail', {}, 'it broke'],
    ['gives too many bytes', 'grow', { bytes: 5_000 }, 'at most 2000 are allowed'],
    ['takes too long', 'sleep', { ms: 60_000 }, 'did not respond in time'],
    ['is called wrongly', 'echo', { text: 7 }, 'expected string'],
    ['nobody has', 'nothing', {}, 'There is no tool "nothing"'],
  ])('%s is told to the model, which goes on', async (_what, name, args, expected) => {
    const { respond } = await odd(calls(name, args), {
      maxResultBytes: 2_000,
      toolTimeout: name === 'sleep' ? 10 : 60,
    });
    const answer = await respond();
    expect(answer.output_text).toContain(expected);
    expect(answer.status).toBe('completed');
    const call = answer.output.find((item) => item.type === 'mcp_call');
    if (name === 'nothing') expect(call).toBeUndefined();
    else expect(call).toMatchObject({ status: 'failed', output: null });
  });

  test('is called with arguments that are no JSON does not run', async () => {
    const { respond } = await odd((request, round) =>
      round === 1
        ? [
            { type: 'head', id: 'r', model: 'm' },
            { type: 'tool-start', block: 0, choice: 0, id: 'c', name: 'echo' },
            { type: 'tool-delta', block: 0, choice: 0, input: '{"text": ' },
            { type: 'tool-end', block: 0, choice: 0 },
            { type: 'finish', choice: 0, reason: 'tool-calls' },
          ]
        : reply(lastResult(request)),
    );
    expect((await respond()).output_text).toContain('not a JSON object');
  });

  test('is renamed while the model thinks is told to be gone', async () => {
    const { respond } = await odd((request, round) =>
      round === 1
        ? reply(toolCall('rename', {}))
        : round === 2
          ? reply(toolCall('before', {}))
          : reply(lastResult(request)),
    );
    expect((await respond()).output_text).toContain('has no tool "before"');
  });

  test('ends its process answers as one that failed', async () => {
    const agent = await startAgent(calls('die', {}), {
      servers: {
        odd: {
          command: process.execPath,
          args: ['--conditions=sluice-source', 'test/support/mcp/stdio-server.ts'],
        },
      },
    });
    const answer = await openai(agent).responses.create({
      model: 'of-messages',
      input: 'Go',
      tools: [mcp('odd')] as never,
    });
    expect(answer.output.find((item) => item.type === 'mcp_call')).toMatchObject({ status: 'failed' });
    expect(answer.output_text).not.toBe('');
  });
});

test('a server over stdio serves calls of all formats', async () => {
  const agent = await startAgent(calls('echo', { text: 'hi' }), {
    servers: {
      odd: {
        command: process.execPath,
        args: ['--conditions=sluice-source', 'test/support/mcp/stdio-server.ts', 'own'],
      },
    },
    offer: [{ servers: ['odd'] }],
  });
  const answer = await openai(agent).chat.completions.create({
    model: 'of-responses',
    messages: [{ role: 'user', content: 'Go' }],
  });
  expect(answer.choices[0]?.message.content).toBe('own: hi');
});

describe('a server that', () => {
  test('is down fails the request that asks for it, and not the one to which it is offered', async () => {
    const agent = await startAgent(() => reply('fine'), {
      servers: { down: { url: 'http://127.0.0.1:9/mcp' } },
      offer: [{ servers: ['down'], models: ['of-messages'] }],
    });
    const failed = await openai(agent)
      .responses.create({ model: 'of-responses', input: 'Go', tools: [mcp('down')] as never })
      .catch((error: unknown) => error as InstanceType<typeof OpenAI.APIError>);
    expect(failed).toMatchObject({
      status: 424,
      message: expect.stringContaining('"down" cannot be listed'),
    });
    expect(JSON.stringify(failed)).not.toContain('127.0.0.1');
    const client = new Anthropic({ apiKey: agent.gateway.key, baseURL: agent.gateway.url, maxRetries: 0 });
    await expect(
      client.beta.messages.create({
        model: 'of-chat-completions',
        max_tokens: 10,
        messages: [{ role: 'user', content: 'Go' }],
        mcp_servers: [{ type: 'url', name: 'down', url: 'sluice:down' }],
      }),
    ).rejects.toMatchObject({ status: 424 });
    const answer = await openai(agent).chat.completions.create({
      model: 'of-messages',
      messages: [{ role: 'user', content: 'Go' }],
    });
    expect(answer.choices[0]?.message.content).toBe('fine');
  });

  test('is not there is refused', async () => {
    const agent = await startAgent(() => reply('fine'), { servers: {} });
    for (const tool of [mcp('wiki'), mcp('wiki', 'https://wiki.example/mcp')])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(
        openai(agent).responses.create({ model: 'of-chat-completions', input: 'Go', tools: [tool] as never }),
      ).rejects.toMatchObject({ status: 400, code: 'unsupported_tool' });
  });

  test('a key may not use is refused', async () => {
    const weather = await startWeather();
    const agent = await startAgent(() => reply('fine'), {
      servers: { weather: { url: weather.server.url, keys: ['boss'] } },
    });
    await expect(
      openai(agent).responses.create({ model: 'of-messages', input: 'Go', tools: [mcp('weather')] as never }),
    ).rejects.toMatchObject({ status: 403 });
  });

  test('lies about its tools gives those alone that a model can take', async () => {
    const liar = await startUpstream(({ body }, response) => {
      const message = JSON.parse(body.toString() || '{}') as { id?: number; method?: string };
      const result =
        message.method === 'initialize'
          ? {
              protocolVersion: '2025-06-18',
              capabilities: { tools: {} },
              serverInfo: { name: 'liar', version: '1' },
            }
          : {
              tools: [
                { name: 'a.b/c d', description: 'x'.repeat(10_000), inputSchema: { type: 'object' } },
                { name: '7up', inputSchema: { type: 'object', properties: {} } },
                { name: 'locate', inputSchema: { type: 'object' } },
                { name: 'n'.repeat(200), inputSchema: { type: 'object' } },
                { name: '', inputSchema: { type: 'object' } },
              ],
            };
      if (message.id === undefined) return void response.writeHead(202).end();
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
    });
    onTestFinished(() => liar.close());
    const agent = await startAgent(() => reply('fine'), {
      servers: { liar: { url: liar.url, protocol: '2025' } },
    });
    const own = { type: 'function', name: 'locate', parameters: { type: 'object' }, strict: false };
    await openai(agent).responses.create({
      model: 'of-generate-content',
      input: 'Go',
      tools: [own, mcp('liar')] as never,
    });
    expect(agent.requests[0]?.tools.map(({ name }) => name)).toEqual([
      'locate',
      'a_b_c_d',
      '_7up',
      'liar_locate',
    ]);
  });

  test('has too many tools is refused with what to do', async () => {
    const server = await startMcpServer(() => {
      const many = new McpServer({ name: 'many', version: '1' });
      for (let tool = 0; tool < 20; tool += 1)
        many.registerTool(`tool${tool}`, { inputSchema: z.object({}) }, async () => ({ content: [] }));
      return many;
    });
    onTestFinished(() => server.close());
    const agent = await startAgent(() => reply('fine'), {
      servers: { many: { url: server.url } },
      maxTools: 10,
    });
    const respondWith = (allowed?: string[]) =>
      openai(agent).responses.create({
        model: 'of-messages',
        input: 'Go',
        tools: [{ ...mcp('many'), ...(allowed === undefined ? {} : { allowed_tools: allowed }) }] as never,
      });
    await expect(respondWith()).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('allowed_tools'),
    });
    expect((await respondWith(['tool1'])).output_text).toBe('fine');
  });

  test('share the name of a tool with another are told apart', async () => {
    const [one, two] = [await startWeather('one'), await startWeather('two')];
    const agent = await startAgent(
      (request, round) =>
        round === 1 ? reply(toolCall('two_forecast', { city: 'Rome' })) : reply(lastResult(request)),
      { servers: { one: { url: one.server.url }, two: { url: two.server.url } } },
    );
    const answer = await openai(agent).responses.create({
      model: 'of-messages',
      input: 'Go',
      tools: [mcp('one'), mcp('two')] as never,
    });
    expect(agent.requests[0]?.tools.map(({ name }) => name)).toEqual([
      'forecast',
      'warn',
      'two_forecast',
      'two_warn',
    ]);
    expect([one.calls.length, two.calls.length]).toEqual([0, 1]);
    expect(answer.output.find((item) => item.type === 'mcp_call')).toMatchObject({
      server_label: 'two',
      name: 'forecast',
    });
  });
});

describe('a model that', () => {
  const endless: Model = () => reply(toolCall('forecast', { city: 'Oslo' }));

  test('never stops is stopped after so many rounds, in the words of each format', async () => {
    const weather = await startWeather();
    const agent = await startAgent(endless, {
      servers: { weather: { url: weather.server.url } },
      offer: [{ servers: ['weather'] }],
      maxRounds: 3,
    });
    const { url, key } = agent.gateway;
    const responses = await openai(agent).responses.create({ model: 'of-messages', input: 'Go' });
    expect([responses.status, responses.incomplete_details]).toEqual([
      'incomplete',
      { reason: 'max_tool_calls' },
    ]);
    expect(responses.output.filter(({ type }) => type === 'mcp_call')).toHaveLength(3);
    expect(agent.requests).toHaveLength(3);
    const messages = await new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0 }).messages.create({
      model: 'of-messages',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Go' }],
    });
    expect(messages.stop_reason).toBe('pause_turn');
    const chat = await openai(agent).chat.completions.create({
      model: 'of-messages',
      messages: [{ role: 'user', content: 'Go' }],
    });
    expect(chat.choices[0]?.finish_reason).toBe('length');
    const google = await fetch(`${url}/v1beta/models/of-messages:generateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Go' }] }] }),
    });
    expect(await google.json()).toMatchObject({ candidates: [{ finishReason: 'TOO_MANY_TOOL_CALLS' }] });
    expect(weather.calls).toHaveLength(12);
  });

  test('never stops is stopped when its time is over, or all bytes are used', async () => {
    const { agent, respond } = await odd(() => reply(toolCall('grow', { bytes: 1_500 })), {
      maxTotalBytes: 2_000,
      maxRounds: 50,
    });
    expect((await respond()).incomplete_details).toEqual({ reason: 'max_tool_calls' });
    expect(agent.requests.length).toBeLessThan(4);
    const late = await odd(() => reply(toolCall('sleep', { ms: 60_000 })), { maxSeconds: 1, maxRounds: 50 });
    const answer = await late.respond();
    expect(answer.incomplete_details).toEqual({ reason: 'max_tool_calls' });
    expect(JSON.stringify(answer.output)).toContain('The time for tools was over');
    expect(late.agent.requests).toHaveLength(1);
  });

  test('calls many tools at once gets their results in order, so many running at a time and so many in all', async () => {
    const weather = await startWeather();
    const cities = ['a', 'b', 'c', 'd', 'e', 'f'];
    const agent = await startAgent(
      (request, round) =>
        round === 1
          ? reply(...cities.map((city, index) => toolCall('forecast', { city }, `call_${index}`)))
          : reply(
              request.messages
                .flatMap(({ content }) =>
                  content.flatMap((block) => (block.type === 'tool-result' ? block.content : [])),
                )
                .map((block) => ('text' in block ? block.text : ''))
                .join('|'),
            ),
      { servers: { weather: { url: weather.server.url } }, concurrency: 2, maxCallsPerRound: 5 },
    );
    for (const format of formats) {
      agent.requests.length = 0;
      weather.calls.length = 0;
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const answer = await openai(agent).responses.create({
        model: `of-${format}`,
        input: 'Go',
        tools: [mcp('weather')] as never,
      });
      expect(answer.output_text).toMatch(
        /^Sunny in a\|Sunny in b\|Sunny in c\|Sunny in d\|Sunny in e\|(?:Error: )?This call did not run, because too many calls were made\.$/,
      );
      expect([weather.calls.length, weather.most()]).toEqual([5, 2]);
    }
  });

  test('is cut in the middle of a call has no tool run', async () => {
    const { agent, respond } = await odd(() => [
      { type: 'head', id: 'r', model: 'm' },
      { type: 'tool-start', block: 0, choice: 0, id: 'c', name: 'echo' },
      { type: 'tool-delta', block: 0, choice: 0, input: '{"text":"a"}' },
      { type: 'tool-end', block: 0, choice: 0 },
      { type: 'finish', choice: 0, reason: 'length' },
    ]);
    const answer = await respond();
    expect([answer.status, answer.incomplete_details?.reason, agent.requests.length]).toEqual([
      'incomplete',
      'max_output_tokens',
      1,
    ]);
  });

  test('fails in a later round ends a stream with the error, and a whole reply with its status', async () => {
    const weather = await startWeather();
    const agent = await startAgent(
      (_request, round) =>
        round % 2 === 1
          ? reply('Let me look.', toolCall('forecast', { city: 'Oslo' }))
          : reply(fail(new Error('no'))),
      { servers: { weather: { url: weather.server.url } } },
    );
    const body = { model: 'of-chat-completions', input: 'Go', tools: [mcp('weather')] as never };
    const seen: string[] = [];
    const events = await openai(agent).responses.create({ ...body, stream: true });
    await expect(async () => {
      for await (const event of events) seen.push(event.type);
    }).rejects.toThrow(/./);
    expect(seen).toContain('response.mcp_call.completed');
    await expect(openai(agent).responses.create(body)).rejects.toMatchObject({ status: 503 });
  });
});

describe('a client that leaves', () => {
  test('ends the tools that run, and the model is not asked again', async () => {
    const server = await startMcpServer(() => oddServer());
    onTestFinished(() => server.close());
    const agent = await startAgent(() => reply('Wait.', toolCall('sleep', { ms: 60_000 })), {
      servers: { odd: { url: server.url } },
    });
    const leave = new AbortController();
    const events = await openai(agent).responses.create(
      { model: 'of-messages', input: 'Go', tools: [mcp('odd')] as never, stream: true },
      { signal: leave.signal },
    );
    const reading = (async () => {
      for await (const event of events) if (event.type === 'response.mcp_call.in_progress') leave.abort();
    })();
    await reading.catch(() => undefined);
    await eventually(() =>
      expect(server.requests.some(({ body }) => body.includes('notifications/cancelled'))).toBe(true),
    );
    expect(agent.requests).toHaveLength(1);
  });

  test('closes the connections to the servers that it named', async () => {
    const weather = await startWeather();
    const agent = await startAgent(
      (request, round) =>
        round === 1 ? reply(toolCall('forecast', { city: 'Oslo' })) : reply(lastResult(request)),
      { clientServers: true },
      { fetch: { allow: ['127.0.0.1'] } },
    );
    const answer = await openai(agent).responses.create({
      model: 'of-messages',
      input: 'Go',
      tools: [
        { ...mcp('mine', weather.server.url), authorization: 'tok', headers: { 'x-own': 'yes' } },
      ] as never,
    });
    expect(answer.output_text).toBe('Sunny in Oslo');
    const [first] = weather.server.requests;
    expect([first?.headers.authorization, first?.headers['x-own']]).toEqual(['Bearer tok', 'yes']);
    expect(JSON.stringify(agent.gateway.lines)).not.toContain('Bearer tok');
  });
});

describe('servers that clients name', () => {
  test.each([
    'http://127.0.0.1:PORT/mcp',
    'http://[::1]:PORT/mcp',
    'http://localhost:PORT/mcp',
    'http://2130706433:PORT/mcp',
    'http://169.254.169.254/latest/meta-data/',
    'http://metadata.google.internal/',
    'file:///etc/passwd',
    'http://user:pass@example.com/',
  ])('are not reached at %s', async (address) => {
    let toolRequests = 0;
    const inside = createServer((_request, response) => {
      toolRequests += 1;
      response.end('secret');
    });
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void inside.close());
    const agent = await startAgent(() => reply('fine'), { clientServers: true });
    const url = address.replace('PORT', String((inside.address() as AddressInfo).port));
    const failed = await openai(agent)
      .responses.create({ model: 'of-messages', input: 'Go', tools: [mcp('mine', url)] as never })
      .catch((error: unknown) => error as { status: number; message: string });
    expect([400, 424]).toContain((failed as { status: number }).status);
    expect(JSON.stringify(failed)).not.toContain('secret');
    expect([toolRequests, agent.requests.length]).toEqual([0, 0]);
  });

  test('lead nowhere by a redirect', async () => {
    let reached = 0;
    const inside = await startUpstream((_request, response) => {
      reached += 1;
      response.end('secret');
    });
    const open = await startUpstream((_request, response) => {
      response.writeHead(307, { location: `${inside.url}/mcp` }).end();
    });
    onTestFinished(async () => {
      await inside.close();
      await open.close();
    });
    const agent = await startAgent(
      () => reply('fine'),
      { clientServers: true },
      { fetch: { allow: ['127.0.0.1'] } },
    );
    await expect(
      openai(agent).responses.create({
        model: 'of-messages',
        input: 'Go',
        tools: [mcp('mine', open.url)] as never,
      }),
    ).rejects.toMatchObject({ status: 424 });
    expect([reached, open.requests.length > 0]).toEqual([0, true]);
  });
});
