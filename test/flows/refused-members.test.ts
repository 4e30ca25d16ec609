import { afterEach, expect, test } from 'vitest';
import type { ModelTraits } from 'sluice';
import { startGateway } from '../support/gateway.ts';
import { startUpstream } from '../support/upstream.ts';
import { call, voices, type FormatName } from './_wire.ts';

type Json = Record<string, unknown>;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A gateway whose channel says that its model refuses members, and what its provider is sent. */
async function stage(format: FormatName, refusedMembers: ModelTraits['refusedMembers']) {
  const upstream = await startUpstream((_, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(voices[format].whole('fine')));
  });
  closers.push(() => upstream.close());
  const traits = { '*': { refusedMembers, reasoning: 'object' } };
  const gateway = await startGateway({ channels: [voices[format].channel(upstream.url, { traits })] });
  closers.push(() => gateway.close());
  const sent = (): string => upstream.requests.at(-1)?.body.toString() ?? '';
  return { gateway, upstream, sent };
}

const chat: FormatName = 'chat-completions';
const chatBody = { ...voices[chat].body('via-chat', false) };

test('a member that the operator says a model refuses is left out of what passes, and the client is told', async () => {
  const { gateway, sent } = await stage(chat, ['seed', 'reasoning.summary']);
  const body = { ...chatBody, seed: 1, reasoning: { summary: 'auto', effort: 'low' }, user: 'me' };
  const reply = await call(gateway, chat, 'via-chat', false, { body });
  expect(reply.status).toBe(200);
  expect(reply.headers['x-sluice-loss']).toBe('seed, reasoning.summary');
  expect(JSON.parse(sent())).toEqual({ ...chatBody, reasoning: { effort: 'low' }, user: 'me' });
});

test('it is named in the client’s own words where the client speaks another format', async () => {
  const { gateway, sent } = await stage('generate-content', ['generationConfig.topK']);
  const body = { ...voices.messages.body('via-content', false), top_k: 3, temperature: 0.5 };
  const reply = await call(gateway, 'messages', 'via-content', false, { body });
  expect(reply.status).toBe(200);
  expect(reply.headers['x-sluice-loss']).toBe('top_k');
  const { generationConfig } = JSON.parse(sent()) as { generationConfig: Json };
  expect(generationConfig).toMatchObject({ temperature: 0.5 });
  expect(generationConfig).not.toHaveProperty('topK');
});

test.each([
  [chat, { ...chatBody, seed: 1 }, ['seed'], 'seed'],
  ['generate-content', { ...voices.messages.body('via-content', false), top_k: 3 }, ['topK'], 'top_k'],
] as const)('a strict client gets 400 for it on a %s channel', async (format, body, refused, named) => {
  const { gateway, upstream } = await stage(format, refused);
  const client: FormatName = format === chat ? chat : 'messages';
  const reply = await call(gateway, client, voices[format].model, false, {
    body,
    headers: { 'x-sluice-strict': 'true' },
  });
  expect(reply.status).toBe(400);
  expect(reply.text).toContain(named);
  expect(upstream.requests).toEqual([]);
});

test('a body without it goes as the bytes that came', async () => {
  const { gateway, sent } = await stage(chat, ['seed']);
  const body = `{ "model" : "via-chat", "x":12345678901234567890, "messages":[{"role":"user","content":"seed"}] }`;
  const reply = await call(gateway, chat, 'via-chat', false, { body });
  expect(reply.status).toBe(200);
  expect(reply.headers).not.toHaveProperty('x-sluice-loss');
  expect(sent()).toBe(body);
});

test('a limit of the output moves to the name that the model takes, and nothing is lost', async () => {
  const { gateway, sent } = await stage(chat, [{ path: 'max_tokens', as: 'max_completion_tokens' }]);
  const reply = await call(gateway, chat, 'via-chat', false, {
    body: { ...chatBody, max_tokens: 7 },
    headers: { 'x-sluice-strict': 'true' },
  });
  expect(reply.status).toBe(200);
  expect(reply.headers).not.toHaveProperty('x-sluice-loss');
  expect(JSON.parse(sent())).toEqual({ ...chatBody, max_completion_tokens: 7 });
});
