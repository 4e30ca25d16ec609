import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, read, readError, voices, type Answer } from './_wire.ts';

/** More than anybody wants to read. */
const many = 20_000;

const { channel, model, whole } = voices['chat-completions'];
const odd = Object.fromEntries(Array.from({ length: many }, (_, index) => [`odd_${index}`, 1]));

let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  const reply = whole('Hello.') as { readonly choices: readonly { readonly message: object }[] };
  const choices = reply.choices.map((choice) => ({ ...choice, message: { ...choice.message, ...odd } }));
  upstream = await startUpstream((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ ...reply, choices }));
  });
  gateway = await startGateway({ channels: [channel(upstream.url)] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Asks in messages what is answered in chat completions. */
function sendMessage(
  content: readonly object[],
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const body = { model, max_tokens: 10, messages: [{ role: 'user', content }] };
  return call(gateway, 'messages', model, false, { headers, body });
}

const marked = Array.from({ length: many }, (_, index) => ({
  type: 'text',
  text: `${index}`,
  [`odd_${index}`]: true,
}));

describe('a call that loses more than anybody reads', () => {
  test('is answered, and what is told has an end', async () => {
    const answer = await sendMessage(marked);
    expect(answer.status).toBe(200);
    const losses = String(answer.headers['x-sluice-loss']);
    expect(losses).toMatch(/^messages\[0\].*, \.\.\.$/);
    expect(losses.length).toBeLessThan(2100);
  });

  test('strict: the refusal names the first, and says that there are more', async () => {
    const refusal = readError('messages', await sendMessage(marked, { 'x-sluice-strict': 'true' }));
    expect(refusal.status).toBe(400);
    expect(refusal.message).toContain('odd_0, ');
    expect(refusal.message).toMatch(/, \.\.\.\.$/);
    expect(refusal.message.length).toBeLessThan(3000);
  });

  test('so is a reply that loses as much: what the log says of it fits into a line', async () => {
    await gateway.forgetLines();
    const answer = await sendMessage([{ type: 'text', text: 'hello' }]);
    expect(read('messages', false, answer)).toMatchObject({ text: 'Hello.', complete: true });
    const lossHeader = String(answer.headers['x-sluice-loss']);
    expect(lossHeader).toMatch(/^odd_0, .*, \.\.\.$/);
    await eventually(() => {
      const losses = gateway.lines.flatMap((line) => (line['losses'] as string[] | undefined) ?? []);
      expect(losses).toHaveLength(50);
      expect(losses[0]).toBe('odd_0');
    });
  });
});
