import { afterEach, describe, expect, test } from 'vitest';
import { copilotTokens, defaultBase } from '../../channels/github-copilot/tokens.ts';
import githubCopilot from '../../channels/github-copilot/index.ts';
import { openai } from '../clients/sdks.ts';
import { formatVoice, reply } from '../../core/sdk/testing/index.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startCopilot, type Copilot } from './_copilot.ts';

let gateway: TestGateway | undefined;
let copilot: Copilot | undefined;
afterEach(async () => {
  await gateway?.close();
  await copilot?.close();
  gateway = copilot = undefined;
});

const key = 'ghu_canary-of-the-account-0123456789';
const voices = { chat: await formatVoice('chat-completions'), responses: await formatVoice('responses') };
const replyEvents = reply('Hello.').filter((step): step is GatewayEvent => 'type' in step);

interface Started {
  readonly client: ReturnType<typeof openai>;
  readonly copilot: Copilot;
  readonly gateway: TestGateway;
}

async function start(options: Parameters<typeof githubCopilot>[0] = {}): Promise<Started> {
  copilot = await startCopilot(key, (request, response) => {
    const voice = request.url.startsWith('/responses') ? voices.responses : voices.chat;
    response.writeHead(200, { 'content-type': 'application/json' }).end(voice.whole(replyEvents, request));
  });
  gateway = await startGateway({
    channels: [
      githubCopilot({
        key,
        baseUrl: copilot.url,
        tokenUrl: `${copilot.url}/copilot_internal/v2/token`,
        models: ['gpt-4o', 'gpt-5.6-sol', 'claude-sonnet-5'],
        ...options,
      }),
    ],
  });
  return { client: openai(gateway), copilot, gateway };
}

const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };

test('a call goes with a token of Copilot, that several calls share, and with the headers that the API demands', async () => {
  const {
    client,
    copilot: { tokens, requests },
  } = await start();
  const sendChat = () =>
    client.chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] });
  const replies = await Promise.all([sendChat(), sendChat(), sendChat()]);
  expect(replies.map(({ choices }) => choices[0]?.message.content)).toEqual(['Hello.', 'Hello.', 'Hello.']);
  expect(tokens).toHaveLength(1);
  const chatRequests = requests.filter(({ url }) => url === '/chat/completions');
  expect(chatRequests).toHaveLength(3);
  for (const { headers } of chatRequests) {
    expect(headers).toMatchObject({ authorization: `Bearer ${tokens[0]}`, 'x-initiator': 'user' });
    expect(headers).not.toHaveProperty('copilot-vision-request');
    expect(JSON.stringify(headers)).not.toContain(key);
  }
});

test('a token that is refused is replaced, and the call is sent again', async () => {
  const { client, copilot: account } = await start();
  const sendChat = () =>
    client.chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] });
  await sendChat();
  account.expire();
  await sendChat();
  expect(account.tokens).toHaveLength(2);
});

test('models of OpenAI are asked in Responses, also for clients of chat completions', async () => {
  const {
    client,
    copilot: { requests },
  } = await start();
  const answer = await client.chat.completions.create({
    model: 'gpt-5.6-sol',
    messages: [{ role: 'user', content: 'Hi' }],
  });
  expect(answer.choices[0]?.message.content).toBe('Hello.');
  const { output_text: text } = await client.responses.create({ model: 'gpt-5.6-sol', input: 'Hi' });
  expect(text).toBe('Hello.');
  expect(requests.slice(1).map(({ url }) => url)).toEqual(['/responses', '/responses']);
});

describe('a request says', () => {
  const call = { id: 'call_1', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
  const turns = [
    { role: 'user' as const, content: 'Look.' },
    { role: 'assistant' as const, tool_calls: [call] },
    { role: 'tool' as const, tool_call_id: 'call_1', content: 'A cat.' },
  ];

  test.each([
    ['a user began the turn', [{ role: 'user' as const, content: 'Hi' }], 'user', undefined],
    ['an agent goes on with the result of a tool', turns, 'agent', undefined],
    [
      'a user asks again after that',
      [...turns, { role: 'user' as const, content: 'And now?' }],
      'user',
      undefined,
    ],
    ['there are images', [{ role: 'user' as const, content: [image] }], 'user', 'true'],
  ])('that %s', async (_name, messages, initiator, vision) => {
    const {
      client,
      copilot: { requests },
    } = await start();
    await client.chat.completions.create({ model: 'claude-sonnet-5', messages });
    const headers = requests.at(-1)?.headers;
    expect(headers?.['x-initiator']).toBe(initiator);
    expect(headers?.['copilot-vision-request']).toBe(vision);
  });
});

test('the models of the account are listed', async () => {
  const { client } = await start({ models: 'discover' });
  await expect
    .poll(async () => (await client.models.list()).data.map(({ id }) => id))
    .toEqual(expect.arrayContaining(['gpt-4o', 'gpt-5.6-sol']));
});

test('an account without a subscription is 502, and the log says what to do without either token', async () => {
  const { client, copilot: account, gateway: started } = await start();
  await client.chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] });
  account.hasSubscription = false;
  account.expire();
  const refused = client.chat.completions.create({
    model: 'gpt-4o',
    messages: [{ role: 'user', content: 'Hi' }],
  });
  await expect(refused).rejects.toMatchObject({ status: 502 });
  const lines = JSON.stringify(started.lines);
  expect(lines).toContain('sluice login github-copilot');
  expect(lines).not.toContain(key);
  for (const token of account.tokens) expect(lines).not.toContain(token);
});

test.each([
  ['https://api.business.githubcopilot.com', 'https://api.business.githubcopilot.com'],
  ['https://copilot-api.acme.ghe.com', 'https://copilot-api.acme.ghe.com'],
  ['https://githubcopilot.com.evil.example', defaultBase],
  ['http://api.githubcopilot.com', defaultBase],
  [undefined, defaultBase],
])('of an account whose plan is at %s, requests go to %s', async (api, base) => {
  const answer = { token: 'tid=1;exp=2:secret', expires_at: 2_000_000_000, endpoints: { api } };
  const plan = { base: '' };
  const http = { read: () => Promise.resolve(Buffer.from(JSON.stringify(answer))) };
  const fetchToken = copilotTokens(http, {
    key,
    tokenUrl: 'https://api.github.com/copilot_internal/v2/token',
    plan,
  });
  await expect(fetchToken()).resolves.toMatchObject({ token: answer.token, expiresAtMs: 2_000_000_000_000 });
  expect(plan.base).toBe(base);
});
