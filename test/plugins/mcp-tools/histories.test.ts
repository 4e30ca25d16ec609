import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { reply, toolCall } from 'sluice/testing';
import { describe, expect, test } from 'vitest';
import type { ChatRequest } from 'sluice';
import { formats, lastResult, startAgent, startWeather, type Agent, type Model } from './_agent.ts';

/** The turns of a request, each as its role and what it holds. */
function turnsOf({ messages }: ChatRequest): readonly string[] {
  return messages.map(
    ({ role, content }) =>
      `${role}: ${content
        .map((block) =>
          block.type === 'text'
            ? block.text
            : block.type === 'tool-call'
              ? `${block.name}(${block.input})`
              : block.type === 'tool-result'
                ? `= ${block.content.map((part) => ('text' in part ? part.text : part.type)).join()}`
                : block.type,
        )
        .join(', ')}`,
  );
}

const anthropic = ({ gateway }: Agent): Anthropic =>
  new Anthropic({ apiKey: gateway.key, baseURL: gateway.url, maxRetries: 0 });
const openai = ({ gateway }: Agent): OpenAI =>
  new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

const twoRounds: Model = (request, round) =>
  round === 1
    ? reply('Let me look.', toolCall('forecast', { city: 'Oslo' }, 'call_1'))
    : reply(lastResult(request));

describe('blocks of messages that come back', () => {
  test.each(formats)('are calls and results for a model of %s', async (format) => {
    const weather = await startWeather();
    const agent = await startAgent(twoRounds, { servers: { weather: { url: weather.server.url } } });
    const client = anthropic(agent);
    const body = {
      model: `of-${format}`,
      max_tokens: 1_000,
      mcp_servers: [{ type: 'url' as const, name: 'weather', url: 'sluice:weather' }],
      betas: ['mcp-client-2025-04-04'],
    };
    const question = { role: 'user' as const, content: 'Oslo?' };
    const first = await client.beta.messages.create({ ...body, messages: [question] });
    const messages = [
      question,
      { role: 'assistant' as const, content: first.content },
      { role: 'user' as const, content: 'Thanks.' },
    ];
    await client.beta.messages.create({ ...body, messages } as never);
    // Also where the request names no server any more.
    await client.beta.messages.create({ model: body.model, max_tokens: 1_000, messages } as never);
    const expected = [
      'user: Oslo?',
      'assistant: Let me look., forecast({"city":"Oslo"})',
      expect.stringMatching(/^(?:user|tool): = Sunny in Oslo$/),
      'assistant: Sunny in Oslo',
      'user: Thanks.',
    ];
    // In Responses each part is an item of its own.
    const joined = (request: ChatRequest): readonly string[] =>
      turnsOf(request).join('\n').replaceAll('\nassistant: forecast', ', forecast').split('\n');
    expect(agent.requests.slice(2).map(joined)).toEqual([expected, expected]);
    expect(weather.calls).toHaveLength(1);
  });

  test.each(formats)(
    'stand beside a function of the client, whose result follows, for a model of %s',
    async (format) => {
      const weather = await startWeather();
      const agent = await startAgent(
        (_request, round) =>
          round === 1
            ? reply(toolCall('locate', {}, 'call_a'), toolCall('forecast', { city: 'Oslo' }, 'call_b'))
            : reply('done'),
        { servers: { weather: { url: weather.server.url } } },
      );
      const body = {
        model: `of-${format}`,
        max_tokens: 1_000,
        mcp_servers: [{ type: 'url' as const, name: 'weather', url: 'sluice:weather' }],
        tools: [
          { name: 'locate', input_schema: { type: 'object' as const } },
          { type: 'mcp_toolset' as const, mcp_server_name: 'weather' },
        ],
        betas: ['mcp-client-2025-11-20'],
      };
      const question = { role: 'user' as const, content: 'Go' };
      const first = await anthropic(agent).beta.messages.create({ ...body, messages: [question] });
      expect(first.content.map(({ type }) => type)).toEqual(['tool_use', 'mcp_tool_use', 'mcp_tool_result']);
      expect(first.stop_reason).toBe('tool_use');
      const [use] = first.content;
      const second = await anthropic(agent).beta.messages.create({
        ...body,
        messages: [
          question,
          { role: 'assistant', content: first.content },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: use?.type === 'tool_use' ? use.id : '', content: 'Berlin' },
            ],
          },
        ],
      } as never);
      expect(second.content).toMatchObject([{ type: 'text', text: 'done' }]);
      const results = agent.requests[1]?.messages.flatMap(({ content }) =>
        content.flatMap((block) => (block.type === 'tool-result' ? block.content : [])),
      );
      expect(results?.map((part) => ('text' in part ? part.text : '')).toSorted()).toEqual([
        'Berlin',
        'Sunny in Oslo',
      ]);
      expect(weather.calls).toHaveLength(1);
    },
  );
});

describe('clients that do not see the calls of servers', () => {
  test('answer their own function first, and the model makes the other call again', async () => {
    const weather = await startWeather();
    const agent = await startAgent(
      (request, round) =>
        round === 1
          ? reply(toolCall('locate', {}, 'call_a'), toolCall('forecast', { city: 'Oslo' }, 'call_b'))
          : round === 2
            ? reply(toolCall('forecast', { city: lastResult(request) }, 'call_c'))
            : reply(lastResult(request)),
      { servers: { weather: { url: weather.server.url } }, offer: [{ servers: ['weather'] }] },
    );
    const tools: OpenAI.ChatCompletionTool[] = [
      { type: 'function', function: { name: 'locate', parameters: { type: 'object', properties: {} } } },
    ];
    const question: OpenAI.ChatCompletionMessageParam = { role: 'user', content: 'Go' };
    const first = await openai(agent).chat.completions.create({
      model: 'of-messages',
      messages: [question],
      tools,
    });
    const [choice] = first.choices;
    expect(choice?.finish_reason).toBe('tool_calls');
    expect(choice?.message.tool_calls).toHaveLength(1);
    expect(weather.calls).toEqual([]);
    const second = await openai(agent).chat.completions.create({
      model: 'of-messages',
      messages: [
        question,
        choice?.message as OpenAI.ChatCompletionMessageParam,
        { role: 'tool', tool_call_id: choice?.message.tool_calls?.[0]?.id ?? '', content: 'Berlin' },
      ],
      tools,
    });
    expect(second.choices[0]?.message.content).toBe('Sunny in Berlin');
  });
});

test('tokens are counted with the tools of the servers', async () => {
  const weather = await startWeather();
  const agent = await startAgent(() => reply('hi'), { servers: { weather: { url: weather.server.url } } });
  const body = { model: 'of-chat-completions', messages: [{ role: 'user' as const, content: 'Oslo?' }] };
  const plain = await anthropic(agent).beta.messages.countTokens(body);
  const more = await anthropic(agent).beta.messages.countTokens({
    ...body,
    mcp_servers: [{ type: 'url', name: 'weather', url: 'sluice:weather' }],
  });
  expect(more.input_tokens).toBeGreaterThan(plain.input_tokens + 20);
});

test('a toolset says which tools of a server are used', async () => {
  const weather = await startWeather();
  const agent = await startAgent(() => reply('hi'), { servers: { weather: { url: weather.server.url } } });
  const namesFor = async (toolset: object): Promise<readonly unknown[]> => {
    agent.requests.length = 0;
    await anthropic(agent).beta.messages.create({
      model: 'of-messages',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'weather', ...toolset }],
      betas: ['mcp-client-2025-11-20'],
    });
    return agent.requests[0]?.tools.map(({ name }) => name) ?? [];
  };
  expect(await namesFor({})).toEqual(['forecast', 'warn']);
  expect(await namesFor({ configs: { warn: { enabled: false } } })).toEqual(['forecast']);
  expect(
    await namesFor({ default_config: { enabled: false }, configs: { warn: { enabled: true } } }),
  ).toEqual(['warn']);
  expect(await namesFor({ default_config: { enabled: false } })).toEqual([]);
});
