import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { reply, startUpstream, toolCall } from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import anthropic from '../../../channels/anthropic.ts';
import openaiChannel from '../../../channels/openai.ts';
import openaiCompatible from '../../../channels/openai-compatible.ts';
import { lastResult, startAgent, startWeather, type Agent } from './_agent.ts';

/** Replies of OpenAI and Anthropic after they have called a server themselves. */
const providersOwn = {
  responses: {
    id: 'resp_own',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'gpt-5',
    output: [
      { id: 'mcpl_own', type: 'mcp_list_tools', server_label: 'wiki', tools: [] },
      {
        id: 'mcp_own',
        type: 'mcp_call',
        server_label: 'wiki',
        name: 'ask',
        arguments: '{}',
        output: 'x',
        error: null,
      },
      {
        id: 'm',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'own', annotations: [] }],
      },
    ],
    usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20 },
  },
  messages: {
    id: 'msg_own',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-5',
    content: [
      { type: 'mcp_tool_use', id: 'mcptoolu_own', name: 'ask', server_name: 'wiki', input: {} },
      {
        type: 'mcp_tool_result',
        tool_use_id: 'mcptoolu_own',
        is_error: false,
        content: [{ type: 'text', text: 'x' }],
      },
      { type: 'text', text: 'own' },
    ],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 10 },
  },
};

const wiki = {
  type: 'mcp' as const,
  server_label: 'wiki',
  server_url: 'https://wiki.example/mcp',
  authorization: 'secret-token',
  require_approval: 'never' as const,
};

async function stage(options: object = {}, { withRelay = false } = {}) {
  const provider = await startUpstream(({ url }, response) => {
    const body = url.includes('/messages') ? providersOwn.messages : providersOwn.responses;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  onTestFinished(() => provider.close());
  const agent = await startAgent(
    (request, round) =>
      round === 1 ? reply(toolCall('forecast', { city: 'Oslo' })) : reply(lastResult(request)),
    options,
    {
      channels: (url) => [
        openaiChannel({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['gpt-5', 'shared'] }),
        anthropic({ key: 'k', baseUrl: `${provider.url}/v1` }),
        ...(withRelay
          ? [
              openaiCompatible({
                name: 'relay',
                key: 'k',
                priority: 1,
                baseUrl: `${url}/v1`,
                models: ['shared'],
              }),
            ]
          : []),
      ],
    },
  );
  return { agent, provider };
}

const clientOf = ({ gateway }: Agent): OpenAI =>
  new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

describe('a provider that calls servers by itself', () => {
  test('gets the request as it is, in Responses', async () => {
    const { agent, provider } = await stage({ clientServers: true });
    const body = { model: 'gpt-5', input: 'Ask the wiki', tools: [wiki] };
    const answer = await clientOf(agent).responses.create(body);
    expect(answer.output.map(({ id }) => id)).toEqual(['mcpl_own', 'mcp_own', 'm']);
    expect(JSON.parse(provider.requests[0]?.body.toString() ?? '')).toEqual(body);
  });

  test('gets the request as it is, in messages, with its beta header', async () => {
    const { agent, provider } = await stage({ clientServers: true });
    const client = new Anthropic({ apiKey: agent.gateway.key, baseURL: agent.gateway.url, maxRetries: 0 });
    const answer = await client.beta.messages.create({
      model: 'claude-sonnet-5',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Ask the wiki' }],
      mcp_servers: [
        { type: 'url', name: 'wiki', url: 'https://wiki.example/mcp', authorization_token: 'secret' },
      ],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'wiki' }],
      betas: ['mcp-client-2025-11-20'],
    });
    expect(answer.content.map(({ type }) => type)).toEqual(['mcp_tool_use', 'mcp_tool_result', 'text']);
    expect(provider.requests[0]?.headers['anthropic-beta']).toBe('mcp-client-2025-11-20');
  });

  test('does not get servers of the operator, which the gateway calls for it', async () => {
    const weather = await startWeather();
    const { agent, provider } = await stage({ servers: { weather: { url: weather.server.url } } });
    const answer = await clientOf(agent).responses.create({
      model: 'gpt-5',
      input: 'Oslo?',
      tools: [{ type: 'mcp', server_label: 'weather', require_approval: 'never' }],
    });
    const [sent] = provider.requests.map(
      ({ body }) => JSON.parse(body.toString()) as { tools: { type: string }[]; store: boolean },
    );
    expect(sent?.tools.map(({ type }) => type)).toEqual(['function', 'function']);
    expect(sent?.store).toBe(false);
    expect(answer.output_text).toBe('own');
    // The response is the gateway's, and what the client has asked for stands in it.
    expect(answer.tools).toEqual([{ type: 'mcp', server_label: 'weather', require_approval: 'never' }]);
  });

  test('that shares a model with another that does not is asked where it is chosen; the other is served here', async () => {
    const weather = await startWeather();
    const { agent } = await stage({ clientServers: true }, { withRelay: true });
    const answer = await clientOf(agent)
      .responses.create({
        model: 'shared',
        input: 'Oslo?',
        tools: [{ ...wiki, server_url: weather.server.url }],
      })
      .catch((error: unknown) => error as { status: number; message: string });
    // The relay is chosen, and refuses the tool; the gateway connects to no private address.
    expect(answer).toMatchObject({ status: 424 });
  });
});

test('where the gateway may not call a server the request goes on as it did without the plugin', async () => {
  const { agent, provider } = await stage();
  await clientOf(agent).responses.create({ model: 'gpt-5', input: 'Ask', tools: [wiki] });
  expect(provider.requests).toHaveLength(1);
  await expect(
    clientOf(agent).responses.create({ model: 'of-messages', input: 'Ask', tools: [wiki] }),
  ).rejects.toMatchObject({ status: 400, code: 'unsupported_tool' });
});

test('a chat without any server is not touched', async () => {
  const { agent } = await stage({ clientServers: true });
  const answer = await clientOf(agent).responses.create({ model: 'of-responses', input: 'hi' });
  expect(agent.requests).toHaveLength(1);
  expect(answer.status).toBe('completed');
});
