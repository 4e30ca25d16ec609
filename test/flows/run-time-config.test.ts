import { Agent } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  configWith,
  key,
  logIn as operator,
  operate,
  password,
  type OperatedGateway,
} from '../reload/gateway.ts';
import { NumberStream, voices } from '../reload/streams.ts';
import { logIn, type Admin, type Words } from '../plugins/admin/_client.ts';
import type { RouteName } from '../../plugins/admin/routes.ts';
import { eventually } from '../support/eventually.ts';
import { withoutPostgres } from '../support/postgres.ts';
import { everything } from '../support/tries.ts';
import { newDatabases } from './_one-database.ts';
import { sendChat } from './_reload.ts';

/** Workers that were replaced end with their last connection. */
const closing = { connection: 'close' };

/** With one worker where a second would show nothing more: each change starts all of them anew. */
async function gatewayOn(database: string, workers = 2): Promise<OperatedGateway> {
  const config = configWith(`database: '${database}', workers: ${workers}, channels: [demo({ pace: 100 })]`);
  const gateway = await operate({ 'gateway.config.mjs': config });
  onTestFinished(() => gateway.end());
  return gateway;
}

async function adminOf({ url }: OperatedGateway) {
  const admin: Admin = await logIn(url, password);
  return {
    call: <Name extends RouteName>(name: Name, words: Words = {}) =>
      admin.request(name, { headers: closing, ...words }),
    refused: (name: RouteName, words: Words = {}) => admin.refused(name, { headers: closing, ...words }),
  };
}

/** Calls a model so often that both workers have been asked, each time over a new connection. */
async function callsOf({ url }: OperatedGateway, model: string, times = 6): Promise<number[]> {
  const statuses: number[] = [];
  for (let count = 0; count < times; count += 1) {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...closing },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
    });
    await response.arrayBuffer();
    statuses.push(response.status);
  }
  return statuses;
}

const channel = (name: string) => ({
  kind: 'channel',
  name,
  value: { type: 'demo', options: { models: [`${name}-model`] } },
});

const served = [200, 200, 200, 200, 200, 200];
const refused = served.map(() => 503);

/** Longest time that the answer to a change waits for the workers, in milliseconds. */
const longestWait = 30_000;

/**
 * Expects all workers to answer with these statuses as soon as a change is answered. The answer waits until they have applied it. Only on a busy machine,
 * where that takes longer than the longest wait, the answer has no `applied`.
 */
async function expectServing(
  answer: { readonly applied?: unknown },
  sentAt: number,
  gateway: OperatedGateway,
  statuses: readonly number[],
): Promise<void> {
  const expectStatuses = async (): Promise<void> =>
    expect(await callsOf(gateway, 'eu-model')).toEqual(statuses);
  if (answer.applied === undefined && performance.now() - sentAt >= longestWait) {
    await eventually(expectStatuses);
    return;
  }
  expect(answer.applied).toEqual({ ok: true, problems: [] });
  await expectStatuses();
}

describe.each(newDatabases())('run-time configuration of two gateways: $kind', ({ kind, url, skip }) => {
  /** Cases that are equal on each database run on one of them, and on all with `npm run fuzz`. */
  const onOne = skip ?? (kind === 'SQLite' || everything ? undefined : 'tried on SQLite');
  /** The same where PostgreSQL is the one, if there is one. */
  const onLast =
    skip ??
    (kind === 'SQLite' && !everything && withoutPostgres() === undefined ? 'tried on PostgreSQL' : undefined);

  test.skipIf(onLast !== undefined)(
    'a channel serves new connections at every worker as soon as its change is answered, and soon at the other gateway',
    async () => {
      const database = await url();
      const [one, other] = [await gatewayOn(database), await gatewayOn(database, 1)];
      const admin = await adminOf(one);
      expect(await callsOf(one, 'eu-model', 1)).toEqual([503]);
      let sentAt = performance.now();
      const created = await admin.call('createConfig', { body: channel('eu') });
      expect(created).toMatchObject({ entry: { state: 'active' } });
      await expectServing(created, sentAt, one, served);
      await eventually(async () => expect(await callsOf(other, 'eu-model')).toEqual(served));
      sentAt = performance.now();
      const disabled = await admin.call('disableConfig', { id: 'channel:eu', body: { version: 1 } });
      expect(disabled).toMatchObject({ entry: { state: 'disabled' } });
      await expectServing(disabled, sentAt, one, refused);
      await eventually(async () => expect(await callsOf(other, 'eu-model')).toEqual(refused));
    },
  );

  test.skipIf(onOne !== undefined || !everything)(
    'a connection that was open before a change makes one more call as before, and is closed with it',
    async () => {
      const gateway = await gatewayOn(await url());
      const admin = await adminOf(gateway);
      await admin.call('createConfig', { body: channel('eu') });
      // Connections to both workers.
      const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
      onTestFinished(() => agents.forEach((agent) => agent.destroy()));
      const callAll = () =>
        Promise.all(
          agents.map(async (agent) => {
            const response = await sendChat(gateway, { model: 'eu-model', agent });
            await text(response);
            return [response.statusCode, response.headers.connection];
          }),
        );
      expect(await callAll()).toEqual(agents.map(() => [200, 'keep-alive']));
      const disabled = await admin.call('disableConfig', { id: 'channel:eu', body: { version: 1 } });
      expect(disabled).toMatchObject({ applied: { ok: true } });
      expect(await callAll()).toEqual(agents.map(() => [200, 'close']));
      expect(await callAll()).toEqual(agents.map(() => [503, 'keep-alive']));
    },
  );

  test.skipIf(onOne !== undefined)('streams that run during fifty changes arrive whole', async () => {
    const database = await url();
    const [one, other] = [await gatewayOn(database, 1), await gatewayOn(database, 1)];
    const admin = await adminOf(one);
    const streams = [one, other].flatMap((gateway) =>
      voices.map((voice) => new NumberStream(gateway.url, voice, 150)),
    );
    await Promise.all(streams.map(({ begun }) => begun));
    const changes = Array.from({ length: 50 }, (_, index) =>
      admin.call('createConfig', { body: { kind: 'alias', name: `alias-${index}`, value: 'demo' } }),
    );
    const revisions = (await Promise.all(changes)).map(({ revision }) => revision);
    expect(revisions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    for (const gateway of [one, other])
      await eventually(async () => expect(await callsOf(gateway, 'alias-49')).toEqual(served));
    expect(await Promise.all(streams.map(({ end }) => end))).toEqual(streams.map(() => 'complete'));
    // Changes that come together share reloads.
    expect(one.lines('reloaded: previous workers finish their calls').length).toBeLessThan(20);
  });

  test.skipIf(onOne !== undefined || !everything)(
    'an entry whose id the file takes later is shadowed, and serves again without',
    async () => {
      const gateway = await gatewayOn(await url());
      const admin = await adminOf(gateway);
      await admin.call('createConfig', { body: channel('eu') });
      const config = (members: string): string =>
        configWith(`database: '${gatewayDatabase}', workers: 2, channels: [demo(), ${members}]`);
      const gatewayDatabase = /database: '([^']+)'/.exec(await readConfig(gateway))?.[1] ?? '';
      gateway.write('gateway.config.mjs', config("demo({ id: 'eu', models: ['file-model'] })"));
      expect(await (await operator(gateway)).sendRequest('POST', 'reload')).toMatchObject({ ok: true });
      expect(await admin.call('findConfig', { id: 'channel:eu' })).toMatchObject({
        state: 'shadowed',
        origin: 'run-time',
      });
      expect(await callsOf(gateway, 'eu-model', 2)).toEqual([503, 503]);
      expect(await callsOf(gateway, 'file-model', 2)).toEqual([200, 200]);
      gateway.write('gateway.config.mjs', config(''));
      expect(await (await operator(gateway)).sendRequest('POST', 'reload')).toMatchObject({ ok: true });
      expect(await admin.call('findConfig', { id: 'channel:eu' })).toMatchObject({ state: 'active' });
    },
  );

  // The merge of entries says the same in test/core/config; two gateways of processes are tried by `npm run fuzz`.
  test.skipIf(onOne !== undefined || !everything)(
    'a gateway that cannot apply a change goes on and says so',
    async () => {
      const database = await url();
      const one = await gatewayOn(database, 1);
      const other = await gatewayOn(database, 1);
      one.write('channels/newer.mjs', newKind);
      expect(await (await operator(one)).sendRequest('POST', 'reload')).toMatchObject({ ok: true });
      const admin = await adminOf(one);
      await admin.call('createConfig', { body: { kind: 'alias', name: 'before', value: 'demo' } });
      await eventually(async () => expect(await callsOf(other, 'before', 2)).toEqual([200, 200]));
      const { applied } = await admin.call('createConfig', {
        body: {
          kind: 'channel',
          name: 'new',
          value: { type: 'newer', options: { models: ['newer-model'] } },
        },
      });
      expect(applied).toMatchObject({ ok: true, problems: [] });
      const { problems } = (await other.logged(
        'the run-time configuration could not be applied: the previous one stays in force',
      )) as {
        problems: string[];
      };
      expect(problems.join()).toContain('the run-time channel "new": there is no channel kind "newer"');
      expect(await callsOf(other, 'before', 4)).toEqual([200, 200, 200, 200]);
      const ready = await fetch(`${other.url}/readyz`, {
        headers: { authorization: `Bearer ${key}`, ...closing },
      });
      expect(ready.status).toBe(200);
      expect(await ready.json()).toMatchObject({
        warnings: expect.arrayContaining(['run-time-configuration']),
      });
    },
  );
});

/** A channel kind that one gateway has and the other has not. */
const newKind = `import demo from '${new URL('../../channels/demo/index.ts', import.meta.url).pathname}';
import { defineChannel } from 'sluice';
export default defineChannel({ ...demo.spec, name: 'newer' });
`;

async function readConfig(gateway: OperatedGateway): Promise<string> {
  const { readFile } = await import('node:fs/promises');
  return readFile(`${gateway.folder}/gateway.config.mjs`, 'utf8');
}
