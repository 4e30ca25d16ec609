import OpenAI from 'openai';
import { reply, thought, toolCall } from 'sluice/testing';
import { describe, expect, test } from 'vitest';
import { lastResult, startAgent, startWeather, type Agent, type Model } from './_agent.ts';

type Input = OpenAI.Responses.ResponseInputItem[];

const forecast = reply(toolCall('forecast', { city: 'Oslo' }, 'call_1'));
const forecastModel: Model = (request, round) => (round === 1 ? forecast : reply(lastResult(request)));

function clientOf({ gateway }: Agent): OpenAI {
  return new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
}

/** An agent with the weather, and what a request says to have it. */
async function stage(
  model: Model,
  approval?: OpenAI.Responses.Tool.Mcp['require_approval'],
  more: object = {},
) {
  const weather = await startWeather();
  const agent = await startAgent(model, { servers: { weather: { url: weather.server.url } }, ...more });
  const tool: OpenAI.Responses.Tool.Mcp = {
    type: 'mcp',
    server_label: 'weather',
    server_url: weather.server.url,
    ...(approval === undefined ? {} : { require_approval: approval }),
  };
  return { weather, agent, client: clientOf(agent), tool };
}

describe('streams of Responses', () => {
  test('tell of lists and calls in the events of the official API', async () => {
    const { client, tool } = await stage(forecastModel, 'never');
    const events = await client.responses.create({
      model: 'of-messages',
      input: 'Oslo?',
      tools: [tool],
      stream: true,
    });
    const seen: string[] = [];
    const sequence: number[] = [];
    for await (const event of events) {
      sequence.push(event.sequence_number);
      const item = 'item' in event ? `(${event.item.type})` : '';
      if (/mcp|output_item|completed/.test(event.type))
        seen.push(`${event.type.replace('response.', '')}${item}`);
    }
    expect(seen).toEqual([
      'output_item.added(mcp_list_tools)',
      'mcp_list_tools.in_progress',
      'mcp_list_tools.completed',
      'output_item.done(mcp_list_tools)',
      'output_item.added(mcp_call)',
      'mcp_call.in_progress',
      'mcp_call_arguments.delta',
      'mcp_call_arguments.done',
      'mcp_call.completed',
      'output_item.done(mcp_call)',
      'output_item.added(message)',
      'output_item.done(message)',
      'completed',
    ]);
    expect(sequence).toEqual(sequence.map((_, index) => index));
  });
});

describe('approval', () => {
  test('is asked for unless the client says otherwise, and the call runs once it has come', async () => {
    const { weather, agent, client, tool } = await stage(forecastModel);
    const input: Input = [{ role: 'user', content: 'Oslo?' }];
    const first = await client.responses.create({
      model: 'of-chat-completions',
      input,
      tools: [tool],
      store: false,
    });
    const request = first.output.find((item) => item.type === 'mcp_approval_request');
    expect(request).toMatchObject({
      server_label: 'weather',
      name: 'forecast',
      arguments: '{"city":"Oslo"}',
    });
    expect([first.status, weather.calls.length, agent.requests.length]).toEqual(['completed', 0, 1]);

    const second = await client.responses.create({
      model: 'of-chat-completions',
      input: [
        ...input,
        ...(first.output as Input),
        { type: 'mcp_approval_response', approval_request_id: request?.id ?? '', approve: true },
      ],
      tools: [tool],
      store: false,
    });
    expect(second.output.map(({ type }) => type)).toEqual(['mcp_call', 'message']);
    expect(second.output[0]).toMatchObject({
      approval_request_id: request?.id,
      output: 'Sunny in Oslo',
      status: 'completed',
    });
    expect(second.output_text).toBe('Sunny in Oslo');
    expect(weather.calls).toHaveLength(1);
  });

  test('goes on by the id of the response', async () => {
    const { weather, client, tool } = await stage(forecastModel);
    const first = await client.responses.create({ model: 'of-messages', input: 'Oslo?', tools: [tool] });
    const request = first.output.find((item) => item.type === 'mcp_approval_request');
    const second = await client.responses.create({
      model: 'of-messages',
      previous_response_id: first.id,
      input: [{ type: 'mcp_approval_response', approval_request_id: request?.id ?? '', approve: true }],
      tools: [tool],
    });
    expect(second.output_text).toBe('Sunny in Oslo');
    const third = await client.responses.create({
      model: 'of-messages',
      previous_response_id: second.id,
      input: 'And now?',
      tools: [tool],
    });
    expect(third.output_text).toBe('Sunny in Oslo');
    expect(weather.calls).toHaveLength(1);
  });

  test('that is declined is told to the model, with the reason', async () => {
    const { weather, agent, client, tool } = await stage(forecastModel);
    const first = await client.responses.create({ model: 'of-messages', input: 'Oslo?', tools: [tool] });
    const request = first.output.find((item) => item.type === 'mcp_approval_request');
    await client.responses.create({
      model: 'of-messages',
      previous_response_id: first.id,
      input: [
        {
          type: 'mcp_approval_response',
          approval_request_id: request?.id ?? '',
          approve: false,
          reason: 'Too dear.',
        },
      ],
      tools: [tool],
    });
    expect(weather.calls).toEqual([]);
    const [, secondRequest] = agent.requests;
    expect(secondRequest && lastResult(secondRequest)).toBe('The user has declined this call. Too dear.');
  });

  test.each([
    [{ never: { tool_names: ['forecast'] } }, 0],
    [{ always: { tool_names: ['forecast'] } }, 1],
    [{ always: { tool_names: ['warn'] } }, 0],
    [{ never: { tool_names: ['warn'] } }, 1],
    [{ never: { read_only: true } }, 0],
    ['always' as const, 1],
    ['never' as const, 0],
  ])('follows the rule %j', async (rule, requests) => {
    const { weather, client, tool } = await stage(forecastModel, rule);
    const answer = await client.responses.create({ model: 'of-responses', input: 'Oslo?', tools: [tool] });
    expect(answer.output.filter(({ type }) => type === 'mcp_approval_request')).toHaveLength(requests);
    expect(weather.calls).toHaveLength(1 - requests);
  });
});

describe('a round with calls of servers and of the client', () => {
  const own: OpenAI.Responses.Tool = {
    type: 'function',
    name: 'locate',
    parameters: { type: 'object', properties: {} },
    strict: false,
  };
  const mixed: Model = (request, round) =>
    round === 1
      ? reply(toolCall('locate', {}, 'call_a'), toolCall('forecast', { city: 'Oslo' }, 'call_b'))
      : reply(
          `${request.messages.flatMap(({ content }) => content).filter(({ type }) => type === 'tool-result').length} results`,
        );

  test('runs the first, ends for the client, and goes on with all results', async () => {
    const { weather, agent, client, tool } = await stage(mixed, 'never');
    for (const model of ['of-chat-completions', 'of-responses', 'of-messages', 'of-generate-content']) {
      agent.requests.length = 0;
      weather.calls.length = 0;
      const input: Input = [{ role: 'user', content: 'Where am I, and how is Oslo?' }];
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const first = await client.responses.create({ model, input, tools: [tool, own] });
      expect(first.output.map(({ type }) => type)).toEqual(['mcp_list_tools', 'function_call', 'mcp_call']);
      expect(weather.calls).toHaveLength(1);
      const call = first.output.find((item) => item.type === 'function_call');
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const second = await client.responses.create({
        model,
        input: [
          ...input,
          ...(first.output as Input),
          { type: 'function_call_output', call_id: call?.call_id ?? '', output: 'Berlin' },
        ],
        tools: [tool, own],
      });
      expect([model, second.output_text, weather.calls.length]).toEqual([model, '2 results', 1]);
      expect(second.output.map(({ type }) => type)).toEqual(['message']);
    }
  });
});

describe('what the client chooses', () => {
  test('is a tool of the server, in the first round alone', async () => {
    const { agent, client, tool } = await stage(forecastModel, 'never');
    await client.responses.create({
      model: 'of-chat-completions',
      input: 'Oslo?',
      tools: [tool],
      tool_choice: { type: 'mcp', server_label: 'weather', name: 'forecast' },
    });
    expect(agent.requests.map(({ toolChoice }) => toolChoice)).toEqual([
      { type: 'tool', name: 'forecast' },
      { type: 'auto' },
    ]);
  });

  test('are tools by name, or those that only read', async () => {
    const { agent, client, tool } = await stage(forecastModel, 'never');
    const namesFor = async (
      allowed: OpenAI.Responses.Tool.Mcp['allowed_tools'],
    ): Promise<readonly unknown[]> => {
      agent.requests.length = 0;
      await client.responses.create({
        model: 'of-messages',
        input: 'hi',
        tools: [{ ...tool, allowed_tools: allowed ?? null }],
      });
      return agent.requests[0]?.tools.map(({ name }) => name) ?? [];
    };
    expect(await namesFor(['warn'])).toEqual(['warn']);
    expect(await namesFor({ tool_names: ['forecast'] })).toEqual(['forecast']);
    expect(await namesFor({ read_only: true })).toEqual(['forecast']);
    expect(await namesFor(null)).toEqual(['forecast', 'warn']);
  });

  test('is the most calls: what comes after runs no tool, and the model answers without any', async () => {
    const { weather, agent, client, tool } = await stage(
      (request, round) =>
        round <= 2
          ? reply(toolCall('forecast', { city: `${round}` }))
          : reply(`${request.tools.length} tools`),
      'never',
    );
    const answer = await client.responses.create({
      model: 'of-messages',
      input: 'Oslo?',
      tools: [tool],
      max_tool_calls: 1,
    });
    expect(answer.output.filter(({ type }) => type === 'mcp_call')).toHaveLength(1);
    expect([weather.calls.length, agent.requests[1]?.tools]).toEqual([1, []]);
    expect(answer.output_text).toBe('0 tools');
  });
});

describe('credentials for a server', () => {
  test('are neither shown nor stored nor logged', async () => {
    const { agent, client, weather } = await stage(forecastModel, 'never', { clientServers: true });
    const tool: OpenAI.Responses.Tool.Mcp = {
      type: 'mcp',
      server_label: 'weather',
      server_url: 'https://elsewhere.example/mcp',
      authorization: 'secret-token-1',
      headers: { 'x-api': 'secret-header-1' },
      require_approval: 'never',
    };
    await expect(
      client.responses.create({ model: 'of-messages', input: 'hi', tools: [tool] }),
    ).rejects.toThrow('cannot be listed');
    const listed: OpenAI.Responses.Tool.Mcp = { ...tool, server_url: weather.server.url };
    const answer = await client.responses.create({ model: 'of-messages', input: 'hi', tools: [listed] });
    const stored = await client.responses.retrieve(answer.id);
    for (const text of [
      JSON.stringify(answer),
      JSON.stringify(stored),
      JSON.stringify(agent.gateway.lines),
      agent.bodies.join(),
    ])
      expect(text).not.toContain('secret-');
    expect(JSON.stringify(answer.tools)).toContain('"server_label":"weather"');
  });
});

test('functions and turns that the gateway adds are no losses of the client', async () => {
  const { agent, tool } = await stage(
    (request, round) =>
      round % 2 === 1
        ? reply(thought('Hm.'), toolCall('forecast', { city: 'Oslo' }))
        : reply(lastResult(request)),
    'never',
  );
  for (const model of ['of-chat-completions', 'of-responses', 'of-messages', 'of-generate-content']) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const answer = await fetch(`${agent.gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${agent.gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, input: 'Oslo?', max_tool_calls: 5, tools: [tool] }),
    });
    expect([model, answer.status, answer.headers.get('x-sluice-loss')]).toEqual([model, 200, null]);
  }
});
