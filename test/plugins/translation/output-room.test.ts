import { expect, test } from 'vitest';
import anthropic from '../../../channels/anthropic.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { startGateway } from '../../support/gateway.ts';
import { startUpstream } from '../../support/upstream.ts';

type Json = Record<string, unknown>;

/** Returns the request to a messages provider for a chat completions client that sends a text of this many tokens and further fields. */
async function sent(tokens: number, more: Json, traits: ModelTraits): Promise<Json> {
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end('{}');
  });
  const gateway = await startGateway({
    channels: [
      anthropic({ key: 'k', baseUrl: upstream.url, models: ['claude-sonnet-4-5'], traits: { '*': traits } }),
    ],
  });
  const content = 'abcd'.repeat(tokens);
  await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'claude-sonnet-4-5', messages: [{ role: 'user', content }], ...more }),
  });
  await gateway.close();
  await upstream.close();
  return JSON.parse(String(upstream.requests[0]?.body)) as Json;
}

const limits = { inputLimit: 200_000, outputLimit: 64_000 };

test.each<[string, number, Json, number]>([
  ['all that the model gives, beside a short input', 1000, {}, 64_000],
  ['as much as the context has room for', 80_000, {}, 40_000],
  ['the ordinary limit, beside a very long input', 150_000, {}, 8192],
  ['the client’s own, whatever its input', 150_000, { max_tokens: 64_000 }, 64_000],
])('the limit of an answer is %s', async (_what, tokens, more, expected) => {
  const { max_tokens: limit } = await sent(tokens, more, limits);
  expect(Number(limit)).toBeLessThanOrEqual(expected);
  expect(Number(limit)).toBeGreaterThan(expected - 100);
});

test('a budget for thinking keeps to the limit that is filled in', async () => {
  const { thinking, max_tokens: limit } = await sent(80_000, { enable_thinking: true }, limits);
  expect(Number(limit)).toBeLessThan(40_001);
  expect(Number((thinking as Json)['budget_tokens'])).toBeLessThan(Number(limit));
});
