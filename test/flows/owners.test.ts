import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import openai from '../../channels/openai.ts';
import sora from '../../channels/sora.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import type { OwnerView } from '../../plugins/admin/schemas/index.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { connectionOf } from '../support/sqlite.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, fetchRaw, formatNames, readError, voices, type Access, type FormatName } from './_wire.ts';

/** Cost of every complete scripted reply: 5 input and 7 output tokens. */
const price = { input: 1_000, output: 2_000 };
const cost = 5 * 1_000 + 7 * 2_000;
const dollars = (amount: number) => ({ unit: 'micro-dollar', period: 'day', amount }) as const;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let admin: Admin;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    if (request.url.startsWith('/v1/videos')) {
      const state = request.method === 'POST' ? { status: 'in_progress', progress: 1 } : { status: 'queued' };
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ id: 's', object: 'video', ...state }));
      return;
    }
    if (request.url.startsWith('/v1/images')) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ created: 1, data: [{ b64_json: 'aGk=' }, { b64_json: 'aGk=' }] }));
      return;
    }
    const text = request.url + request.body.toString();
    const name = formatNames.find((format) => text.includes(`${format}-`)) ?? 'messages';
    const voice = voices[name];
    if (text.includes('-endless')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const frame of voice.frames(['On and on']).slice(0, -voice.ending)) response.write(frame);
    } else if (/stream(?!":\s*false)/.test(text))
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(voice.frames(['Hi']).join(''));
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voice.whole('Hello.')));
  });
  const models = (name: FormatName): string[] => [`${name}-fine`, `${name}-endless`];
  const unpriced = (name: FormatName): string => `${name}-unpriced`;
  gateway = await startGateway({
    adminPassword,
    plugins: [videoTasks({ poll: { first: 30, most: 50, patience: 500 }, fresh: 0 })],
    channels: [
      ...formatNames.map((name) =>
        voices[name].channel(upstream.url, { id: name, models: [...models(name), unpriced(name)] }),
      ),
      openai({ id: 'images', key: 's', baseUrl: `${upstream.url}/v1`, models: ['picture-1'] }),
      sora({ key: 's', baseUrl: `${upstream.url}/v1`, models: ['sora-2'] }),
    ],
    prices: {
      'sora-2': { perSecond: 0.1 },
      'picture-1': { perImage: 0.04 },
      ...Object.fromEntries(formatNames.flatMap((name) => models(name).map((model) => [model, price]))),
    },
  });
  admin = await logIn(gateway.url);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const owner = (body: object): Promise<OwnerView> => admin.request('createOwner', { body });

async function keyOf(body: object): Promise<Access & { readonly id: string }> {
  const { key, value } = await admin.request('createKey', { body: { name: 'k', ...body } });
  return { url: gateway.url, key: value, id: key.id };
}

async function spentBy(id: string): Promise<number | undefined> {
  const { budgets } = await admin.request('findOwner', { id });
  return budgets[0] && budgets[0].spent + budgets[0].reserved;
}

describe('a team and its organisation', () => {
  test('are charged for the calls of all of their keys, and refuse what goes beyond their budgets, in each format', async () => {
    const acme = await owner({ kind: 'organisation', name: 'Acme', budgets: [dollars(10_000_000_000)] });
    const member = await owner({
      kind: 'member',
      name: 'Ada',
      organisation: acme.id,
      budgets: [dollars(1e12)],
    });
    let before = 0;
    for (const format of formatNames) {
      // Room for the largest of these calls, and for one more that was charged.
      const team = await owner({
        kind: 'team',
        name: `research in ${format}`,
        organisation: acme.id,
        budgets: [dollars(100_000_000)],
      });
      const keys = [await keyOf({ team: team.id }), await keyOf({ team: team.id, member: member.id })];
      for (const key of keys)
        for (const stream of [false, true]) {
          const answer = await call(key, format, `${format}-fine`, stream);
          expect(answer.status).toBe(200);
        }
      await eventually(async () => expect(await spentBy(team.id)).toBe(4 * cost));
      expect(await spentBy(acme.id)).toBe(before + 4 * cost);
      await admin.request('updateOwner', { id: team.id, body: { budgets: [dollars(4 * cost)] } });
      const refused = await call(keys[1] ?? keys[0]!, format, `${format}-fine`, true);
      expect(readError(format, refused)).toMatchObject({
        status: 429,
        message: expect.stringContaining(`The daily budget of the team "research in ${format}" ($0.076)`),
      });
      // Whoever is not of the team is not concerned, and the organisation pays.
      expect((await call(await keyOf({ member: member.id }), format, `${format}-fine`, false)).status).toBe(
        200,
      );
      before += 5 * cost;
      await eventually(async () => expect(await spentBy(acme.id)).toBe(before));
    }
  });

  test('are charged by the price rule of the team, in each format, and the record keeps the cost too', async () => {
    const acme = await owner({
      kind: 'organisation',
      name: 'Seller',
      budgets: [dollars(1e12)],
      pricing: { factor: 3 },
    });
    const team = await owner({
      kind: 'team',
      name: 'customers',
      organisation: acme.id,
      budgets: [dollars(1e12), { ...dollars(1e12), period: 'hours', hours: 5 }],
      pricing: { factor: 1.5, models: [{ model: 'messages-*', factor: 2 }] },
    });
    expect(team).toMatchObject({ pricing: { factor: 1.5 }, budgets: [{ period: 'day' }, { hours: 5 }] });
    const key = await keyOf({ team: team.id, budgets: [dollars(1e12)], tags: ['red'] });
    let charged = 0;
    for (const format of formatNames)
      for (const stream of [false, true]) {
        expect((await call(key, format, `${format}-fine`, stream)).status).toBe(200);
        charged += cost * (format === 'messages' ? 2 : 1.5);
      }
    await eventually(async () => expect(await spentBy(team.id)).toBe(charged));
    expect(await spentBy(acme.id)).toBe(charged);
    const { budgets } = await admin.request('findOwner', { id: team.id });
    expect(budgets[1]).toMatchObject({ period: 'hours', hours: 5, spent: charged, reserved: 0 });
    expect((await admin.request('findKey', { id: key.id })).budgets[0]?.spent).toBe(charged);
    const { records } = await admin.request('listUsage', { query: { keyId: key.id } });
    expect(records).toHaveLength(2 * formatNames.length);
    for (const { model, microDollars, chargedMicroDollars, tags } of records)
      expect({ microDollars, chargedMicroDollars, tags }).toEqual({
        microDollars: cost,
        chargedMicroDollars: cost * (model.startsWith('messages') ? 2 : 1.5),
        tags: ['red'],
      });
    // What a call may come to is reserved by the same rule.
    await admin.request('updateOwner', { id: team.id, body: { budgets: [dollars(charged + cost)] } });
    expect((await call(key, 'messages', 'messages-fine', true)).status).toBe(429);
    await admin.request('updateOwner', { id: team.id, body: { budgets: null, pricing: null } });
    await admin.request('updateOwner', { id: acme.id, body: { pricing: { factor: 0 } } });
    expect((await call(key, 'messages', 'messages-fine', true)).status).toBe(200);
  });

  test('are charged by a price table of the team in each format, for models without a price too, for images and videos', async () => {
    const team = await owner({
      kind: 'team',
      name: 'resellers',
      budgets: [dollars(1e12)],
      pricing: {
        factor: 10,
        models: [
          { model: '*-fine', price: { input: 3_000, output: 10 } },
          { model: '*-unpriced', price: { input: 1_000, output: 1_000, perCall: 0.001 } },
          { model: 'picture-*', price: { perImage: 0.1 } },
          { model: 'sora-2', price: { perSecond: 0.5 } },
        ],
      },
    });
    expect(team.pricing?.models?.[2]).toEqual({ model: 'picture-*', price: { perImage: 0.1 } });
    const key = await keyOf({ team: team.id });
    const own = { fine: 5 * 3_000 + 7 * 10, unpriced: 12 * 1_000 + 1_000 };
    let charged = 0;
    for (const format of formatNames)
      for (const kind of ['fine', 'unpriced'] as const)
        for (const stream of [false, true]) {
          expect((await call(key, format, `${format}-${kind}`, stream)).status).toBe(200);
          charged += own[kind];
        }
    const images = { model: 'picture-1', prompt: 'x', n: 2 };
    expect((await fetchRaw(key, '/v1/images/generations', { body: images })).status).toBe(200);
    const video = { model: 'sora-2', prompt: 'x', seconds: '8' };
    expect((await fetchRaw(key, '/v1/videos', { body: video })).status).toBe(200);
    await eventually(async () => expect(await spentBy(team.id)).toBe(charged + 200_000 + 4_000_000));
    const { records } = await admin.request('listUsage', { query: { keyId: key.id } });
    const seen = records.map(({ model, microDollars, chargedMicroDollars }) =>
      JSON.stringify([model.replace(/^.*-/, ''), microDollars, chargedMicroDollars]),
    );
    expect(new Set(seen)).toEqual(
      new Set([
        JSON.stringify(['fine', cost, own.fine]),
        JSON.stringify(['unpriced', undefined, own.unpriced]),
        JSON.stringify(['1', 80_000, 200_000]),
        JSON.stringify(['2', 800_000, 4_000_000]),
      ]),
    );
    // What a call may come to is reserved by the table.
    await admin.request('updateOwner', { id: team.id, body: { budgets: [dollars(charged + 4_200_000)] } });
    expect((await call(key, 'messages', 'messages-unpriced', false)).status).toBe(429);
    const { budgets } = await admin.request('findOwner', { id: team.id });
    expect(budgets[0]?.spent).toBe(charged + 4_200_000);
  });

  test('give each end user a budget of its own, which calls without an end user share', async () => {
    const team = await owner({
      kind: 'team',
      name: 'shop',
      endUserBudget: { unit: 'token', period: 'day', amount: 20 },
    });
    const key = await keyOf({ team: team.id, callTags: true });
    const sendCall = async (user: string | undefined, tags?: string): Promise<number> => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key.key}`,
          'content-type': 'application/json',
          ...(tags === undefined ? {} : { 'x-sluice-tags': tags }),
        },
        body: JSON.stringify({
          model: 'chat-completions-fine',
          messages: [{ role: 'user', content: '.' }],
          max_tokens: 1,
          ...(user === undefined ? {} : { user }),
        }),
      });
      await response.text();
      return response.status;
    };
    const most = async (user: string | undefined): Promise<number> => {
      // Whoever has used up a budget before concerns nobody else.
      expect(await sendCall(user)).toBe(200);
      let served = 1;
      // Each call is settled before the next: what it may come to is more than its charge.
      await eventually(async () => {
        const status = await sendCall(user);
        if (status === 200) served += 1;
        expect(status).toBe(429);
      });
      return served;
    };
    // A call costs more than is reserved for it, so that one or two are served.
    for (const user of ['ada', 'bob', undefined]) expect(await most(user)).toBeGreaterThanOrEqual(1);
    expect(await sendCall('ada')).toBe(429);
    expect(await sendCall('carol', 'blue, green')).toBe(200);
    expect(await sendCall('dora', 'x'.repeat(65))).toBe(400);
    expect(await sendCall('dora', Array.from({ length: 21 }, (_, index) => `t${index}`).join())).toBe(400);
    await eventually(async () => {
      const { records } = await admin.request('listUsage', { query: { keyId: key.id } });
      expect(records.find(({ endUser }) => endUser === 'carol')).toMatchObject({ tags: ['blue', 'green'] });
    });
    expect(await call(await keyOf({}), 'messages', 'messages-fine', false)).toMatchObject({ status: 200 });
  });

  test('have limits of rates for all of their keys together', async () => {
    const team = await owner({ kind: 'team', name: 'slow', requestsPerMinute: 2 });
    const keys = [
      await keyOf({ team: team.id }),
      await keyOf({ team: team.id }),
      await keyOf({ team: team.id }),
    ];
    const statuses: number[] = [];
    for (const key of keys) statuses.push((await call(key, 'messages', 'messages-fine', false)).status);
    expect(statuses).toEqual([200, 200, 429]);
    const { message } = readError('messages', await call(keys[0]!, 'messages', 'messages-fine', false));
    expect(message).toContain('The team "slow" may be used for 2 requests a minute.');
  });

  test('decide with the key which models it may use and lists, and from where', async () => {
    const acme = await owner({ kind: 'organisation', name: 'picky', models: ['*-fine'] });
    const team = await owner({
      kind: 'team',
      name: 'narrow',
      organisation: acme.id,
      models: ['messages-*', 'chat-completions-*'],
    });
    const key = await keyOf({ team: team.id, models: ['messages-fine', 'generate-content-fine', 'sora-2'] });
    const listed = await fetchRaw(key, '/v1/models');
    expect((JSON.parse(listed.text) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual([
      'messages-fine',
    ]);
    expect((await call(key, 'messages', 'messages-fine', false)).status).toBe(200);
    for (const name of ['generate-content', 'chat-completions'] as const)
      expect(readError(name, await call(key, name, `${name}-fine`, false)).message).toContain(
        'has no access to the model',
      );
    await admin.request('updateOwner', { id: acme.id, body: { addresses: ['203.0.113.0/24'] } });
    await eventually(async () =>
      expect((await call(key, 'messages', 'messages-fine', false)).status).toBe(403),
    );
  });

  test('end the calls of all of their keys when they are switched off or deleted', async () => {
    const team = await owner({ kind: 'team', name: 'gone soon' });
    const key = await keyOf({ team: team.id });
    const stream = new Promise<void>((begun) => {
      void call(key, 'messages', 'messages-endless', true, { begun }).then(ended.resolve);
    });
    await stream;
    await admin.request('updateOwner', { id: team.id, body: { enabled: false } });
    expect((await ended.promise).text).toContain('was switched off while the call ran');
    expect((await call(key, 'messages', 'messages-fine', false)).status).toBe(401);
    await admin.request('updateOwner', { id: team.id, body: { enabled: true } });
    expect((await call(key, 'messages', 'messages-fine', false)).status).toBe(200);
    await admin.request('deleteOwner', { id: team.id });
    expect((await call(key, 'messages', 'messages-fine', false)).status).toBe(401);
    // It works for somebody else.
    await admin.request('updateKey', { id: key.id, body: { team: null } });
    expect((await call(key, 'messages', 'messages-fine', false)).status).toBe(200);
  });

  test('are given back what a task was charged that came to nothing', async () => {
    const team = await owner({
      kind: 'team',
      name: 'films',
      budgets: [dollars(10_000_000)],
      endUserBudget: dollars(1_000_000),
    });
    const key = await keyOf({ team: team.id });
    const make = async (user: string): Promise<number> => {
      const body = { model: 'sora-2', prompt: 'x', seconds: '8', user };
      return (await fetchRaw(key, '/v1/videos', { body })).status;
    };
    expect(await make('ada')).toBe(200);
    expect(await spentBy(team.id)).toBe(800_000);
    // The end user is charged too, and is given it back.
    expect(await make('ada')).toBe(429);
    expect(await make('bob')).toBe(200);
    expect(await spentBy(team.id)).toBe(1_600_000);
    await eventually(async () => {
      // A question that is on its way does not know it, and writes the deadline that it has read.
      connectionOf(gateway.stores).exec('UPDATE tasks SET deadline = 0');
      expect(await spentBy(team.id)).toBe(0);
    });
    expect(await make('ada')).toBe(200);
  });
});

const ended = Promise.withResolvers<{ readonly text: string }>();

describe('administration', () => {
  test('lists, finds, changes and deletes owners, and writes down who did', async () => {
    const acme = await owner({ kind: 'organisation', name: 'Umbrella', note: 'Find me' });
    const teams = [
      await owner({ kind: 'team', name: 'one', organisation: acme.id }),
      await owner({ kind: 'team', name: 'two', organisation: acme.id, concurrency: 3 }),
    ];
    const query = { organisation: acme.id, limit: 1 };
    const first = await admin.request('listOwners', { query });
    expect(first.owners).toEqual([teams[1]]);
    const second = await admin.request('listOwners', { query: { ...query, after: first.next ?? '' } });
    expect([second.owners, second.next]).toEqual([[teams[0]], undefined]);
    expect((await admin.request('listOwners', { query: { search: 'FIND me' } })).owners).toEqual([acme]);
    expect((await admin.refused('deleteOwner', { id: acme.id })).body.error.message).toContain(
      'belongs to "Umbrella"',
    );
    const changed = await admin.request('updateOwner', {
      id: teams[1]!.id,
      body: { organisation: null, concurrency: null, name: 'three' },
    });
    expect(changed).toEqual({
      ...teams[1],
      name: 'three',
      organisation: undefined,
      concurrency: undefined,
      version: expect.any(String) as unknown,
    });
    await admin.request('deleteOwner', { id: teams[0]!.id });
    await admin.request('deleteOwner', { id: acme.id });
    expect((await admin.refused('findOwner', { id: acme.id })).status).toBe(404);
    const { entries } = await admin.request('listAudit', { query: { limit: 3 } });
    expect(entries.map(({ action, target }) => [action, target])).toEqual([
      ['owner-delete', acme.id],
      ['owner-delete', teams[0]!.id],
      ['owner-update', teams[1]!.id],
    ]);
  });

  test.each([
    [{ kind: 'group', name: 'x' }, 'kind'],
    [{ kind: 'team', name: '' }, 'name'],
    [{ kind: 'team', name: 'x', budgets: [dollars(-1)] }, 'budgets'],
    [{ kind: 'team', name: 'x', models: Array.from({ length: 51 }, (_, index) => `m${index}`) }, 'models'],
    [{ kind: 'team', name: 'x', requestsPerMinute: 0 }, 'requestsPerMinute'],
    [{ kind: 'team', name: 'x', expiresAt: 1 }, 'expiresAt'],
    [{ kind: 'team', name: 'x', organisation: 'org_none' }, 'There is no organisation org_none'],
    [{ kind: 'team', name: 'x', pricing: { models: [{ model: 'm' }] } }, 'must have a factor or a price'],
    [{ kind: 'team', name: 'x', pricing: { models: [{ model: 'm', price: { input: 1 } }] } }, 'price.output'],
    [
      {
        kind: 'team',
        name: 'x',
        pricing: {
          models: Array.from({ length: 200 }, (_, index) => ({
            model: `m${index}`.padEnd(200, 'x'),
            price: { input: 1, output: 1, services: { ['s'.repeat(80)]: 1 } },
          })),
        },
      },
      'must not be longer than 50000 characters',
    ],
  ])('refuses what cannot be: %j', async (body, word) => {
    const { status, body: ownBody } = await admin.refused('createOwner', { body });
    expect(status).toBe(400);
    expect(JSON.stringify(ownBody)).toContain(word);
  });

  test('refuses keys of owners that do not exist', async () => {
    const { status, body } = await admin.refused('createKey', { body: { name: 'k', team: 'team_none' } });
    expect([status, body.error.message]).toEqual([400, 'There is no team team_none.']);
  });
});
