import { reply, testPlugins, toolCall, type Script } from 'sluice/testing';
import type { GatewayEvent, JsonObject } from 'sluice';
import { describe, expect, onTestFinished, test } from 'vitest';
import mcpTools from '../../../plugins/mcp-tools/index.ts';
import { startWeather } from './_agent.ts';

async function stage(options: Parameters<typeof mcpTools>[0] = {}) {
  const weather = await startWeather();
  const tested = await testPlugins(
    mcpTools({
      servers: { weather: { url: weather.server.url } },
      offer: [{ servers: ['weather'] }],
      ...options,
    }),
  );
  onTestFinished(() => tested.close());
  return { weather, tested };
}

/** A reply of a provider that has run a tool of its own before it calls one of ours. */
function withHosted(format: string, ...values: readonly JsonObject[]): Script {
  const [head, ...rest] = reply(toolCall('forecast', { city: 'Oslo' }, 'call_1'));
  const hosted = values.map((value): GatewayEvent => ({ type: 'opaque', format, value, choice: 0 }));
  return [...(head === undefined ? [] : [head]), ...hosted, ...rest];
}

describe('the next request of a loop', () => {
  test.each([
    [
      'messages',
      [
        {
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
        },
        {
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'input_json_delta', partial_json: '{"query":' },
        },
        { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '"a"}' } },
        { type: 'content_block_stop', index: 0 },
      ],
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'a' } },
    ],
    [
      'responses',
      [
        { type: 'response.output_item.added', output_index: 0, item: { id: 'ws', type: 'web_search_call' } },
        {
          type: 'response.output_item.done',
          output_index: 0,
          item: { id: 'ws', type: 'web_search_call', status: 'completed' },
        },
      ],
      { id: 'ws', type: 'web_search_call', status: 'completed' },
    ],
  ] as const)('brings along what tools of the provider gave in %s', async (format, events, block) => {
    const { tested } = await stage();
    const { sent } = await tested.run(
      { messages: ['Oslo?'], format },
      { reply: (_sent, round) => (round === 0 ? withHosted(format, ...events) : 'Sunny.') },
    );
    const [, , turn] = sent[1]?.request.messages ?? [];
    const all = sent[1]?.request.messages.flatMap(({ content }) => content) ?? [];
    expect(turn).toBeDefined();
    expect(all.filter(({ type }) => type === 'opaque')).toMatchObject([{ format, value: block }]);
  });

  test('brings the reasoning with its proof', async () => {
    const { tested } = await stage();
    const proof = { format: 'messages', kind: 'signature', value: 'sealed' } as const;
    const position = { block: 7, choice: 0 };
    const [head, ...rest] = reply(toolCall('forecast', { city: 'Oslo' }));
    const { sent } = await tested.run(
      { messages: ['Oslo?'], format: 'messages' },
      {
        reply: (_sent, round) =>
          round === 0
            ? [
                ...(head === undefined ? [] : [head]),
                { type: 'reasoning-start', ...position },
                { type: 'reasoning-delta', ...position, text: 'Hm.' },
                { type: 'reasoning-end', ...position, proof },
                ...rest,
              ]
            : 'Sunny.',
      },
    );
    expect(sent[1]?.request.messages[1]?.content).toMatchObject([
      { type: 'reasoning', text: 'Hm.', proof },
      { type: 'tool-call', name: 'forecast' },
    ]);
  });
});

describe('offered servers', () => {
  test('that do not fit beside those that were asked for are left out', async () => {
    const { tested } = await stage({ maxTools: 1 });
    const { sent, text } = await tested.run('Oslo?', { reply: 'hi' });
    expect([sent[0]?.request.tools.length, text]).toEqual([0, 'hi']);
    expect(JSON.stringify(tested.lines)).toContain('too many tools');
  });

  test('are not used for several answers', async () => {
    const { tested } = await stage();
    const { sent } = await tested.run({ messages: ['Oslo?'], settings: { choices: 2 } }, { reply: 'hi' });
    expect(sent[0]?.request.tools).toEqual([]);
  });
});

test('an offer of a server that there is not is an error at the start', () => {
  expect(() => mcpTools.spec.options?.parse({ offer: [{ servers: ['wiki'] }] })).toThrow(
    'not one of the servers',
  );
});
