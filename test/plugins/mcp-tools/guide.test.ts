import { readFileSync } from 'node:fs';
import { reply, toolCall } from 'sluice/testing';
import { expect, test } from 'vitest';
import { home } from '../../house/source.ts';
import { join } from 'node:path';
import { lastResult, startAgent, startWeather } from './_agent.ts';

const page = readFileSync(join(home, 'docs/guides/mcp.md'), 'utf8');
const requests = [...page.matchAll(/^(\w[\w ]*) \(`POST (\/[^`]+)`\):\n\n```json\n([\s\S]*?)^```$/gm)].map(
  ([, name = '', path = '', body = '']) => ({
    name,
    path,
    body: JSON.parse(body) as Record<string, unknown>,
  }),
);

test('the guide has a request in each format', () => {
  expect(requests.map(({ name }) => name)).toEqual([
    'Responses',
    'Messages',
    'Chat completions',
    'generateContent',
  ]);
});

test.each(requests)('the request of the guide in $name gets the weather', async ({ path, body }) => {
  const weather = await startWeather();
  const { gateway } = await startAgent(
    (request, round) =>
      round === 1 ? reply(toolCall('forecast', { city: 'Oslo' })) : reply(lastResult(request)),
    { servers: { weather: { url: weather.server.url } } },
  );
  const model = 'of-chat-completions';
  const answer = await fetch(`${gateway.url}${path.replace('MODEL', model)}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ ...body, ...('model' in body ? { model } : {}) }),
  });
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain('Sunny in Oslo');
});
