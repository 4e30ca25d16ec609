import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

let gateway: TestGateway;
let upstream: ScriptedUpstream;

const turns = [{ role: 'user', content: 'hi' }];
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-5',
  output: [
    { id: 'ws', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'cats' } },
    {
      id: 'm',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'hi', annotations: [] }],
    },
  ],
  usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20 },
};

beforeAll(async () => {
  upstream = await startUpstream(({ url }, reply) => {
    const whole = url.includes('/messages')
      ? {
          ...voices.messages.whole('hi'),
          usage: { input_tokens: 10, output_tokens: 10, server_tool_use: { web_search_requests: 1 } },
        }
      : url.includes('/responses')
        ? response
        : url.includes(':generate')
          ? {
              candidates: [
                {
                  content: { role: 'model', parts: [{ text: 'hi' }] },
                  finishReason: 'STOP',
                  groundingMetadata: { webSearchQueries: ['cats'] },
                },
              ],
              usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
            }
          : voices['chat-completions'].whole('hi');
    reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
  });
  const at = { key: 'k', baseUrl: `${upstream.url}/v1` };
  // The models, limits and prices of the list that comes along.
  gateway = await startGateway({ channels: [openai(at), anthropic(at), gemini(at)] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void (upstream.requests.length = 0));

/** The tools of agents as they were recorded, shortened: clients of November 2026. */
const agents: Readonly<Record<string, { path: string; body: Json; used: Json }>> = {
  Codex: {
    path: '/v1/responses',
    body: {
      model: 'gpt-5',
      store: false,
      include: ['reasoning.encrypted_content'],
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }],
      tools: [
        {
          type: 'function',
          name: 'shell_command',
          parameters: { type: 'object', properties: {} },
          strict: false,
        },
        { type: 'local_shell' },
        { type: 'custom', name: 'apply_patch', description: 'd', format: { type: 'text' } },
        {
          type: 'namespace',
          name: 'mcp',
          description: 'd',
          tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }],
        },
        { type: 'web_search', external_web_access: true },
        { type: 'image_generation', output_format: 'png' },
        { type: 'tool_search' },
      ],
    },
    used: { units: { services: { 'web-search': 1 } } },
  },
  'Codex with its tools among the input': {
    path: '/v1/responses',
    body: {
      model: 'gpt-5',
      store: false,
      input: [
        {
          type: 'additional_tools',
          role: 'developer',
          tools: [
            {
              type: 'namespace',
              name: 'n',
              description: 'd',
              tools: [{ type: 'custom', name: 'exec', description: 'd' }],
            },
            { type: 'web_search' },
          ],
        },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      ],
    },
    used: { units: { services: { 'web-search': 1 } } },
  },
  'Claude Code': {
    path: '/v1/messages?beta=true',
    body: {
      model: 'claude-haiku-4-5',
      max_tokens: 32_000,
      messages: turns,
      tools: [
        {
          name: 'Bash',
          description: 'd',
          input_schema: { type: 'object', properties: { command: { type: 'string' } } },
        },
        {
          name: 'Task',
          description: 'd',
          input_schema: { type: 'object', properties: { model: { type: 'string' } } },
          defer_loading: true,
        },
        { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
        { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
        { type: 'web_fetch_20250910', name: 'web_fetch' },
      ],
    },
    used: { units: { services: { 'web-search': 1 } } },
  },
  'Gemini CLI': {
    path: '/v1beta/models/gemini-2.5-flash:generateContent',
    body: {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      tools: [{ googleSearch: {} }, { urlContext: {} }],
      generationConfig: { topP: 0.95, topK: 64 },
    },
    used: { units: { services: { 'web-search': 1 } } },
  },
  Copilot: {
    path: '/v1/chat/completions',
    body: {
      model: 'gpt-4.1',
      temperature: 0,
      top_p: 0.95,
      messages: turns,
      tools: [
        {
          type: 'function',
          function: { name: 'bash', description: 'd', parameters: { type: 'object', properties: {} } },
        },
      ],
    },
    used: {},
  },
};

describe.each(Object.entries(agents))(
  '%s, with a key that has five dollars',
  (_name, { path, body, used }) => {
    test('is served, and charged for the services that it used', async () => {
      const { value, record } = await gateway.apiKeys.create({
        name: 'agent',
        budgets: [{ unit: 'micro-dollar', period: 'total', amount: 5e6 }],
      });
      const reply = await fetch(gateway.url + path, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
          authorization: `Bearer ${value}`,
        },
        body: JSON.stringify(body),
      });
      expect({ status: reply.status, text: await reply.text() }).toMatchObject({ status: 200 });
      const log = openUsageLog(gateway.stores);
      await expect.poll(async () => (await log.page({ keyId: record.id }, 10)).records).toHaveLength(1);
      const { records } = await log.page({ keyId: record.id }, 10);
      expect(records).toMatchObject([used]);
      const least = Object.keys(used).length > 0 ? 10_000 : 1;
      expect(records[0]?.microDollars).toBeGreaterThanOrEqual(least);
      expect(records[0]?.microDollars).toBeLessThan(100_000);
    });
  },
);
