import OpenAI from 'openai';
import { reply, toolCall } from 'sluice/testing';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { lastResult, startAgent, startWeather } from './_agent.ts';

test('a background response runs the loop without its client', async () => {
  const weather = await startWeather();
  const { gateway } = await startAgent(
    (request, round) =>
      round === 1 ? reply(toolCall('forecast', { city: 'Oslo' })) : reply(lastResult(request)),
    { servers: { weather: { url: weather.server.url, chargeMicroDollars: 1_000 } } },
  );
  const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const begun = await client.responses.create({
    model: 'of-messages',
    input: 'Oslo?',
    background: true,
    tools: [{ type: 'mcp', server_label: 'weather', require_approval: 'never' }],
  });
  const done = await eventually(async () => {
    const now = await client.responses.retrieve(begun.id);
    expect(now.status).toBe('completed');
    return now;
  });
  expect(done.output.map(({ type }) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'message']);
  expect(JSON.stringify(done.output)).toContain('Sunny in Oslo');
});
