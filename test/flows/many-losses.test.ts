import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import openaiCompatible from '../../channels/openai-compatible.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

/** More than anybody wants to read. */
const many = 20_000;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [
          {
            index: 0,
            message: {
              role: 'assistant',
              content: 'Hello.',
              ...Object.fromEntries(Array.from({ length: many }, (_, index) => [`odd_${index}`, 1])),
            },
            finish_reason: 'stop',
          },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    );
  });
  gateway = await startGateway({
    channels: [openaiCompatible({ name: 'other', baseUrl: upstream.url, key: 'sk', models: ['m'] })],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

function ask(content: readonly object[], headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': gateway.key,
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body: JSON.stringify({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content }] }),
  });
}

const marked = Array.from({ length: many }, (_, index) => ({
  type: 'text',
  text: `${index}`,
  [`odd_${index}`]: true,
}));

describe('a call that loses more than anybody reads', () => {
  test('is answered, and what is told has an end', async () => {
    const response = await ask(marked);
    expect(response.status).toBe(200);
    const told = response.headers.get('x-sluice-loss') ?? '';
    expect(told).toMatch(/^messages\[0\].*, \.\.\.$/);
    expect(told.length).toBeLessThan(2100);
  });

  test('strict: the refusal names the first, and says that there are more', async () => {
    const response = await ask(marked, { 'x-sluice-strict': 'true' });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).toContain('odd_0, ');
    expect(error.message).toMatch(/, \.\.\.\.$/);
    expect(error.message.length).toBeLessThan(3000);
  });

  test('so is a reply that loses as much: what the log says of it fits into a line', async () => {
    await gateway.forgetLines();
    const response = await ask([{ type: 'text', text: 'hello' }]);
    expect(await response.json()).toMatchObject({ content: [{ text: 'Hello.' }] });
    const told = response.headers.get('x-sluice-loss') ?? '';
    expect(told).toMatch(/^odd_0, .*, \.\.\.$/);
    await eventually(() => {
      const losses = gateway.lines.flatMap((line) => (line['losses'] as string[] | undefined) ?? []);
      expect(losses).toHaveLength(50);
      expect(losses[0]).toBe('odd_0');
    });
  });
});
