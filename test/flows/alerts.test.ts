import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import openai from '../../channels/openai.ts';
import alerts from '../../plugins/alerts/index.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { secret, startReceiver, type Receiver } from '../plugins/alerts/_receiver.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream } from '../support/upstream.ts';
import { newDatabases } from './_one-database.ts';
import { voices } from './_wire.ts';

/** Cost of every scripted reply in micro-dollars. */
const cost = 5 + 7 * 2_000;

type Options = NonNullable<Parameters<typeof alerts>[0]>;

interface Started {
  readonly gateway: TestGateway;
  readonly admin: Admin;
}

/** A provider that fails while `isDown` says so. */
async function startProvider(isDown: () => boolean = () => false): Promise<string> {
  const upstream = await startUpstream((_request, response) => {
    if (isDown())
      response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}');
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voices['chat-completions'].whole('Hello.')));
  });
  onTestFinished(() => upstream.close());
  return upstream.url;
}

async function start(provider: string, options: Options, database = 'sqlite::memory:'): Promise<Started> {
  const gateway = await startGateway({
    adminPassword,
    database,
    channels: [openai({ id: 'main', key: 'k', baseUrl: provider, models: ['gpt-x'] })],
    prices: { 'gpt-x': { input: 1, output: 2_000 } },
    health: { failures: 2, rest: 300 },
    routing: { attempts: 1 },
    plugins: [alerts({ interval: 100, backoff: 50, errorRate: false, ...options })],
  });
  onTestFinished(() => gateway.close());
  return { gateway, admin: await logIn(gateway.url) };
}

const hook = (receiver: Receiver): NonNullable<Options['destinations']> => ({
  hook: { type: 'webhook', url: receiver.url, secret },
});

/** Sends a call that reserves hardly more than it costs. Resolves with its status. */
async function sendChat({ url, key: own }: TestGateway, key = own): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'gpt-x',
      max_completion_tokens: 7,
      messages: [{ role: 'user', content: 'Hi' }],
    }),
  });
  await response.arrayBuffer();
  return response.status;
}

/** Asks for the list of models, which costs nothing. Resolves with the status. */
async function listModels({ url }: TestGateway, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

/** A route of the plugin, as the page asks for it. */
async function route({ gateway, admin }: Started, path = '', body?: object): Promise<Record<string, never>> {
  const response = await fetch(`${gateway.url}/api/alerts${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      cookie: admin.cookie,
      'x-csrf-token': admin.csrfToken,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, never>;
}

describe.each(newDatabases())('alerts on $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'are sent once for each level of a budget by two gateways, also after both were started anew',
    async () => {
      const receiver = await startReceiver();
      const provider = await startProvider();
      const database = await url();
      const gateways = [
        await start(provider, { destinations: hook(receiver) }, database),
        await start(provider, { destinations: hook(receiver) }, database),
      ] as const;
      const [{ admin }] = gateways;
      const team = await admin.request('createOwner', {
        body: {
          kind: 'team',
          name: 'research',
          budgets: [{ unit: 'micro-dollar', period: 'month', amount: 10 * cost }],
        },
      });
      const { value } = await admin.request('createKey', { body: { name: 'ci', team: team.id } });
      // The other gateway learns of the key within about a second.
      await eventually(async () => expect(await listModels(gateways[1].gateway, value)).toBe(200));
      const spend = async (calls: number): Promise<void> => {
        for (let index = 0; index < calls; index += 1)
          expect(await sendChat(gateways[index % 2 === 0 ? 0 : 1].gateway, value)).toBe(200);
      };
      const levels = (): readonly string[] => receiver.alerts('budget').map(({ text }) => text);
      await spend(5);
      await eventually(() => expect(levels()).toHaveLength(1));
      expect(levels()[0]).toBe('The monthly budget of the team "research" is spent to 50 %: $0.07 of $0.14.');
      await spend(3);
      await eventually(() => expect(levels()).toHaveLength(2));
      await Promise.all(gateways.map(({ gateway }) => gateway.close()));
      const again = await start(provider, { destinations: hook(receiver) }, database);
      expect(await sendChat(again.gateway, value)).toBe(200);
      // What is left does not suffice for another call.
      expect(await sendChat(again.gateway, value)).toBe(429);
      await eventually(() => expect(levels()).toHaveLength(3));
      await wait(500);
      expect(levels().map((text) => /to (\d+) %/.exec(text)?.[1])).toEqual(['50', '80', '100']);
    },
    60_000,
  );

  test.skipIf(skip !== undefined)(
    'tell that a channel is down and that it serves again, each once, and are signed as Standard Webhooks want it',
    async () => {
      let isDown = true;
      const receiver = await startReceiver();
      const provider = await startProvider(() => isDown);
      const database = await url();
      const options = { destinations: hook(receiver), url: 'https://gateway.example.com/' };
      const [one] = [await start(provider, options, database), await start(provider, options, database)];
      await sendChat(one.gateway);
      await sendChat(one.gateway);
      await eventually(() => expect(receiver.alerts('channel-down')).toHaveLength(1));
      expect(receiver.alerts()[0]).toMatchObject({
        severity: 'critical',
        state: 'firing',
        link: 'https://gateway.example.com/dashboard/#/channels',
        text: expect.stringContaining('The channel "main"'),
      });
      const [{ headers, text }] = receiver.seen as [(typeof receiver.seen)[number]];
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toMatchObject({
        type: 'alert.firing',
      });
      isDown = false;
      await eventually(async () => expect(await sendChat(one.gateway)).toBe(200), 100);
      await eventually(() =>
        expect(receiver.alerts('channel-down').map(({ state }) => state)).toEqual(['firing', 'resolved']),
      );
    },
    60_000,
  );
});

test('an error rate is told when enough calls have failed, and its end', async () => {
  let isDown = true;
  const receiver = await startReceiver();
  const provider = await startProvider(() => isDown);
  const { gateway } = await start(provider, {
    destinations: hook(receiver),
    errorRate: { window: 2_000, share: 0.5, calls: 2 },
    routes: [{ to: ['hook'], kinds: ['error-rate'] }],
  });
  await sendChat(gateway);
  await wait(300);
  expect(receiver.alerts()).toEqual([]);
  await sendChat(gateway);
  await eventually(() =>
    expect(
      receiver
        .alerts()
        .map(({ subject }) => subject)
        .toSorted(),
    ).toEqual(['channel main', 'model gpt-x']),
  );
  expect(receiver.seen).toHaveLength(1);
  isDown = false;
  await eventually(() =>
    expect(receiver.alerts().filter(({ state }) => state === 'resolved')).toHaveLength(2),
  );
}, 30_000);

test('a receiver that fails gets the same message again; one that hangs or redirects holds nobody up', async () => {
  const elsewhere = await startReceiver();
  const failing = await startReceiver((index) => (index < 2 ? 500 : 204));
  const hanging = await startReceiver(() => 'hang');
  const redirecting = await startReceiver(() => ({ status: 307, location: elsewhere.url }));
  const sound = await startReceiver();
  const provider = await startProvider(() => true);
  const webhook = (receiver: Receiver) => ({ type: 'webhook', url: receiver.url, secret }) as const;
  const started = await start(provider, {
    destinations: {
      failing: webhook(failing),
      hanging: webhook(hanging),
      redirecting: webhook(redirecting),
      sound: webhook(sound),
    },
    attempts: 3,
    timeout: 500,
  });
  await sendChat(started.gateway);
  await sendChat(started.gateway);
  await eventually(() => expect(sound.alerts('channel-down')).toHaveLength(1));
  await eventually(() => expect(failing.seen).toHaveLength(3));
  expect(new Set(failing.seen.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  await eventually(async () => {
    const { destinations } = (await route(started)) as unknown as {
      destinations: readonly { name: string; waiting: number; last?: { error?: string } }[];
    };
    expect(destinations.map(({ name, waiting, last }) => [name, waiting, last?.error])).toEqual([
      ['failing', 0, undefined],
      ['hanging', 0, expect.stringMatching(/too long|did not (?:answer|respond)/)],
      ['redirecting', 0, 'It returned status 307, a redirect, which is not followed.'],
      ['sound', 0, undefined],
    ]);
  });
  expect(elsewhere.seen).toEqual([]);
  expect(hanging.seen).toHaveLength(3);
  await wait(300);
  expect(sound.seen).toHaveLength(1);
  const droppedLines = started.gateway.lines.filter(({ msg }) => msg === 'an alert message was dropped');
  expect(droppedLines.map(({ destination }) => destination).toSorted()).toEqual(['hanging', 'redirecting']);
  expect(JSON.stringify(started.gateway.lines)).not.toContain(secret);
}, 60_000);

describe('administrators', () => {
  test('see alerts, test destinations, and nobody else does', async () => {
    const receiver = await startReceiver((index) => (index === 0 ? 204 : 403));
    const started = await start(await startProvider(), { destinations: hook(receiver) });
    expect(await route(started, '/test', { destination: 'hook' })).toEqual({ ok: true });
    expect(receiver.alerts('test')).toHaveLength(1);
    expect(await route(started, '/test', { destination: 'hook' })).toEqual({
      ok: false,
      error: 'It returned status 403.',
    });
    expect(await route(started, '/test', { destination: 'none' })).toMatchObject({
      error: { message: expect.stringContaining('no destination "none"') },
    });
    expect((await fetch(`${started.gateway.url}/api/alerts`)).status).toBe(401);
    const bare = await fetch(`${started.gateway.url}/api/alerts/test`, {
      method: 'POST',
      headers: { cookie: started.admin.cookie },
      body: '{"destination":"hook"}',
    });
    expect(bare.status).toBe(403);
  });

  test('mute a kind for a time, and acknowledge an alert', async () => {
    const receiver = await startReceiver();
    const started = await start(await startProvider(() => true), { destinations: hook(receiver) });
    await route(started, '/mute', { kind: 'channel-down', minutes: 5 });
    await sendChat(started.gateway);
    await sendChat(started.gateway);
    type View = { alerts: readonly { id: string; state: string; acknowledgedAt?: number }[] };
    const list = async (): Promise<View['alerts']> => ((await route(started)) as unknown as View).alerts;
    await eventually(async () => expect(await list()).toMatchObject([{ state: 'firing' }]));
    await wait(300);
    expect(receiver.seen).toEqual([]);
    const [open] = await list();
    await route(started, '/acknowledge', { id: open?.id });
    await route(started, '/mute', { kind: 'channel-down', minutes: 0 });
    await wait(300);
    expect(receiver.seen).toEqual([]);
    expect(await list()).toMatchObject([{ state: 'firing', acknowledgedAt: expect.any(Number) }]);
    expect(await route(started, '/acknowledge', { id: 'none' })).toMatchObject({
      error: { message: 'There is no open alert with this id.' },
    });
    const { entries } = await started.admin.request('listAudit');
    const actor = { kind: 'password', id: 'password', name: 'admin password' };
    expect(entries.filter(({ action }) => action !== 'login')).toMatchObject([
      {
        action: 'alerts.mute',
        target: 'channel-down',
        before: { until: expect.any(Number) },
        after: {},
        actor,
      },
      {
        action: 'alerts.acknowledge',
        target: open?.id,
        before: {},
        after: { acknowledgedBy: actor.name },
        actor,
      },
      {
        action: 'alerts.mute',
        target: 'channel-down',
        before: {},
        after: { until: expect.any(Number) },
        actor,
      },
    ]);
  });
});
