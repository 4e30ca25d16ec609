import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { ended, reply, thought, toolCall } from 'sluice/testing';
import { describe, expect, test } from 'vitest';
import { formats, lastResult, startAgent, startWeather, type FormatName, type Model } from './_agent.ts';

/** Asks for the weather in two rounds: says something, calls the tool, and tells what it gave. */
const agent: Model = (request, round) =>
  round === 1
    ? ended(
        { usage: { input: 100, output: 10 } },
        thought('Hm.'),
        'Let me look.',
        toolCall('forecast', { city: 'Oslo' }),
      )
    : ended({ usage: { input: 150, output: 20 } }, `It is: ${lastResult(request)}.`);

const prompt = 'How is the weather in Oslo?';

interface Answer {
  readonly text: string;
  readonly input: number;
  readonly output: number;
  /** Types of the parts of the answer, in order. */
  readonly parts: readonly string[];
}

type Client = (at: { url: string; key: string; model: string; stream: boolean }) => Promise<Answer>;

const clients: Readonly<Record<FormatName, Client>> = {
  async 'chat-completions'({ url, key, model, stream }) {
    const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
    const body = {
      model,
      messages: [{ role: 'user' as const, content: prompt }],
      tools: [
        { type: 'mcp', server_label: 'weather', server_url: 'sluice:weather', require_approval: 'never' },
      ] as never,
    };
    if (stream) {
      const chunks = await client.chat.completions.create({
        ...body,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = '';
      let usage: OpenAI.CompletionUsage | null | undefined;
      let reason: string | null | undefined;
      for await (const chunk of chunks) {
        text += chunk.choices[0]?.delta.content ?? '';
        reason = chunk.choices[0]?.finish_reason ?? reason;
        usage = chunk.usage ?? usage;
      }
      return {
        text,
        input: usage?.prompt_tokens ?? 0,
        output: usage?.completion_tokens ?? 0,
        parts: [reason ?? ''],
      };
    }
    const answer = await client.chat.completions.create(body);
    const [choice] = answer.choices;
    expect(choice?.message.tool_calls).toBeUndefined();
    return {
      text: choice?.message.content ?? '',
      input: answer.usage?.prompt_tokens ?? 0,
      output: answer.usage?.completion_tokens ?? 0,
      parts: [choice?.finish_reason ?? ''],
    };
  },
  async responses({ url, key, model, stream }) {
    const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
    const body = {
      model,
      input: prompt,
      tools: [
        {
          type: 'mcp' as const,
          server_label: 'weather',
          server_url: 'sluice:weather',
          require_approval: 'never' as const,
        },
      ],
    };
    let answer: OpenAI.Responses.Response;
    if (stream) {
      const events = client.responses.stream(body);
      for await (const _ of events);
      answer = await events.finalResponse();
    } else answer = await client.responses.create(body);
    const call = answer.output.find((item) => item.type === 'mcp_call');
    expect(call).toMatchObject({
      server_label: 'weather',
      name: 'forecast',
      arguments: '{"city":"Oslo"}',
      output: 'Sunny in Oslo',
      error: null,
    });
    expect(
      answer.output.find((item) => item.type === 'mcp_list_tools')?.tools.map(({ name }) => name),
    ).toEqual(['forecast', 'warn']);
    return {
      text: answer.output_text,
      input: answer.usage?.input_tokens ?? 0,
      output: answer.usage?.output_tokens ?? 0,
      parts: answer.output.map(({ type }) => type),
    };
  },
  async messages({ url, key, model, stream }) {
    const client = new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0 });
    const body = {
      model,
      max_tokens: 1_000,
      messages: [{ role: 'user' as const, content: prompt }],
      mcp_servers: [{ type: 'url' as const, name: 'weather', url: 'sluice:weather' }],
      tools: [{ type: 'mcp_toolset' as const, mcp_server_name: 'weather' }],
      betas: ['mcp-client-2025-11-20'],
    };
    const answer = stream
      ? await client.beta.messages.stream(body).finalMessage()
      : await client.beta.messages.create(body);
    expect(answer.content.find(({ type }) => type === 'mcp_tool_use')).toMatchObject({
      name: 'forecast',
      server_name: 'weather',
      input: { city: 'Oslo' },
    });
    expect(answer.content.find(({ type }) => type === 'mcp_tool_result')).toMatchObject({
      is_error: false,
      content: [{ type: 'text', text: 'Sunny in Oslo' }],
    });
    expect(answer.stop_reason).toBe('end_turn');
    return {
      text: answer.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''),
      input: answer.usage.input_tokens,
      output: answer.usage.output_tokens,
      parts: answer.content.map(({ type }) => type),
    };
  },
  async 'generate-content'({ url, key, model, stream }) {
    const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
    const request = {
      model,
      contents: prompt,
      config: {
        tools: [{ mcpServers: [{ name: 'weather', streamableHttpTransport: { url: 'sluice:weather' } }] }],
      },
    };
    let text = '';
    let usage:
      | { promptTokenCount?: number; candidatesTokenCount?: number; thoughtsTokenCount?: number }
      | undefined;
    let reason: string | undefined;
    const chunks = stream
      ? await client.models.generateContentStream(request)
      : [await client.models.generateContent(request)];
    for await (const chunk of chunks) {
      text += chunk.text ?? '';
      usage = chunk.usageMetadata ?? usage;
      reason = chunk.candidates?.[0]?.finishReason ?? reason;
      expect(chunk.functionCalls ?? []).toEqual([]);
    }
    return {
      text,
      input: usage?.promptTokenCount ?? 0,
      output: (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
      parts: [reason ?? ''],
    };
  },
};

const expected: Readonly<Record<FormatName, readonly string[]>> = {
  'chat-completions': ['stop'],
  responses: ['mcp_list_tools', 'reasoning', 'message', 'mcp_call', 'message'],
  messages: ['text', 'mcp_tool_use', 'mcp_tool_result', 'text'],
  'generate-content': ['STOP'],
};

describe.each(formats)('the official client of %s', (format) => {
  describe.each(formats)('gets tools of an MCP server with a model of %s', (served) => {
    test.each([false, true])('stream: %s', async (stream) => {
      const weather = await startWeather();
      const { gateway, requests, bodies } = await startAgent(agent, {
        servers: { weather: { url: weather.server.url } },
      });
      const { url, key } = gateway;
      const answer = await clients[format]({ url, key, model: `of-${served}`, stream });
      expect(answer.text.replace(/\n\n/, '')).toBe('Let me look.It is: Sunny in Oslo.');
      expect([answer.input, answer.output]).toEqual([250, 30]);
      expect(answer.parts.filter((part) => part !== 'thinking')).toEqual(expected[format]);
      expect(weather.calls).toEqual([{ name: 'forecast', args: { city: 'Oslo' } }]);
      expect(requests).toHaveLength(2);
      expect(requests[0]?.tools.map(({ name }) => name)).toEqual(['forecast', 'warn']);
      expect(bodies.join()).not.toContain('mcp');
    });
  });
});

describe('an offered server', () => {
  test.each(formats)('is used by %s without a word of the client', async (format) => {
    const weather = await startWeather();
    const { gateway, requests } = await startAgent(
      (request, round) =>
        round === 1 ? reply(toolCall('forecast', { city: 'Rome' })) : reply(lastResult(request)),
      { servers: { weather: { url: weather.server.url } }, offer: [{ servers: ['weather'] }] },
    );
    const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const answer = await client.chat.completions.create({
      model: `of-${format}`,
      messages: [{ role: 'user', content: 'Rome?' }],
    });
    expect(answer.choices[0]?.message.content).toBe('Sunny in Rome');
    expect(requests).toHaveLength(2);
  });

  test('is used for the models and keys that the operator names alone', async () => {
    const weather = await startWeather();
    const { gateway, requests } = await startAgent(() => reply('hi'), {
      servers: { weather: { url: weather.server.url } },
      offer: [{ servers: ['weather'], models: ['of-chat*'], keys: ['team-*'] }],
    });
    const { value } = await gateway.apiKeys.create({ name: 'team-a' });
    const countRequests = async (apiKey: string, model: string): Promise<number> => {
      requests.length = 0;
      const client = new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
      await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] });
      return requests[0]?.tools.length ?? 0;
    };
    expect(await countRequests(value, 'of-chat-completions')).toBe(2);
    expect(await countRequests(value, 'of-messages')).toBe(0);
    expect(await countRequests(gateway.key, 'of-chat-completions')).toBe(0);
  });
});
