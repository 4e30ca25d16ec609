import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  startMoneyStage,
  ample,
  oneToken,
  tiny,
  type Answered,
  type Client,
  type MoneyStage,
} from './_endpoint-stage.ts';
import { formatOf, pathOf, type Case } from './_endpoint-rows.ts';
import { table, unserved } from './_endpoint-table.ts';
import { collections } from '../../plugins/provider-objects/collections.ts';
import { eventually } from '../support/eventually.ts';
import { refusedSocket, SocketClient } from '../support/websocket.ts';

let stage: MoneyStage;
beforeAll(async () => {
  stage = await startMoneyStage();
});
afterAll(() => stage.close());

test('every route of the gateway says what it does to a budget, and no other route does', () => {
  expect(Object.keys(table).toSorted()).toEqual([...stage.routes].toSorted());
});

test('a path that several formats share has a row for each of them', () => {
  const shared = [
    ...Map.groupBy(
      collections.flatMap(({ format, paths }) => paths.map((path) => ({ format, path }))),
      ({ path }) => path,
    ),
  ]
    .map(([path, all]) => ({ path, formats: all.map(({ format }) => format) }))
    .filter(({ formats }) => formats.length > 1);
  expect(shared.map(({ path }) => path).toSorted()).toEqual(['/v1/batches', '/v1/files']);
  for (const { path, formats } of shared)
    for (const [route, uses] of Object.entries(table))
      if (new RegExp(`^[A-Z]+ ${path}(?:$|/|:)`).test(route) && !route.includes('download'))
        expect([route, [...new Set(uses.map(formatOf))].toSorted()]).toEqual([route, formats.toSorted()]);
});

const cases = [
  ...Object.entries(table),
  ...Object.entries(unserved).map(([route, one]) => [route, [one]] as const),
]
  .flatMap(([route, uses]) => uses.map((use) => [route, use] as const))
  .map(([route, one]) => {
    const { money, use, why } = one;
    const name = `${route}${use === undefined ? '' : ` (${use})`}`;
    return [`${name}: ${money}${why === undefined ? '' : `, because ${why}`}`, { route, one }] as const;
  });

/** A client with its key, and what the case needs, made while the key has no budget. */
async function prepared({ make }: Case): Promise<{ readonly client: Client; readonly id: string }> {
  const client = await stage.client();
  const id = (await make?.(client, stage)) ?? 'none';
  return { client, id };
}

function sent(client: Client, route: string, one: Case, id: string): Promise<Answered> {
  const [method = '', shared] = route.split(' ');
  if (method === 'WS') return sentOverSocket(client, `${shared ?? ''}${one.query ?? ''}`, one);
  const body = one.bodyOf?.(id) ?? one.body;
  return client.send({
    method: method === 'ALIAS' ? 'POST' : method,
    path: pathOf(route, one, id),
    ...(body === undefined ? {} : { body }),
    ...(one.headers === undefined ? {} : { headers: one.headers }),
  });
}

/** As a response: the status of a refused connection, or of the error that a message is answered with. */
async function sentOverSocket(client: Client, path: string, { body }: Case): Promise<Answered> {
  const headers = { authorization: `Bearer ${client.key}` };
  const url = client.url + path;
  let socket: SocketClient;
  try {
    socket = await SocketClient.open(url, { headers });
  } catch {
    const refusal = await refusedSocket(url, { headers });
    return { status: refusal.status, headers: new Headers(), body: refusal.body };
  }
  socket.send(body);
  const [last = {}] = await socket.until(({ type }) =>
    /^(?:error|response\.(?:done|completed)|session\.output_audio\.delta)$/.test(String(type)),
  );
  socket.socket.close(1000);
  await socket.closed;
  const { status } = last as { readonly status?: unknown };
  return {
    status: last['type'] === 'error' ? (typeof status === 'number' ? status : 400) : 200,
    headers: new Headers(),
    body: last,
  };
}

/** Returns the result of a background response, in the form of a response that is refused immediately. */
async function endOf(client: Client, { body }: Answered): Promise<Answered> {
  return eventually(async () => {
    const ended = await client.send({ method: 'GET', path: `/v1/responses/${String(body['id'])}` });
    expect(ended.body).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('budget of this API key') },
    });
    return { ...ended, status: 429 };
  });
}

const casesOf = (money: Case['money']) => cases.filter(([, { one }]) => one.money === money);
const nothing = { spent: 0, reserved: 0 };

describe.each(casesOf('reserved'))('%s', (_, { route, one }) => {
  test.each(one.isUnitless === true ? [tiny] : [tiny, oneToken])(
    'is refused before a provider is asked when a budget of $amount in $unit has no room for it',
    async (budget) => {
      const { client, id } = await prepared(one);
      await client.limit(budget);
      const before = { asked: stage.requestCount(), ...(await client.standing(budget)) };
      const answered = await sent(client, route, one, id);
      const { status, body } = one.isRefusedLater === true ? await endOf(client, answered) : answered;
      expect([status, body]).toEqual([429, expect.anything()]);
      expect({ asked: stage.requestCount(), ...(await client.standing(budget)) }).toEqual(before);
    },
  );

  test('is charged when a budget has room for it, and leaves no reservation', async () => {
    const { client, id } = await prepared(one);
    await client.limit(ample);
    const { spent: before } = await eventually(async () => {
      const standing = await client.standing(ample);
      expect(standing.reserved).toBe(0);
      return standing;
    });
    const requestsBefore = stage.requestCount();
    const created = await sent(client, route, one, id);
    expect([created.status, created.body]).toEqual([200, expect.anything()]);
    expect(stage.requestCount()).toBeGreaterThan(requestsBefore);
    await one.settle?.(stage, client, created);
    await eventually(async () => {
      const { spent, reserved } = await client.standing(ample);
      expect(reserved).toBe(0);
      expect(spent).toBeGreaterThan(before);
    });
  });
});

describe.each(casesOf('refused'))('%s', (_, { route, one }) => {
  test.each(one.use === 'in tokens' ? [oneToken] : [tiny, oneToken, ample])(
    'for a key with a budget of $amount in $unit',
    async (budget) => {
      const { client, id } = await prepared(one);
      await client.limit(budget);
      const requestsBefore = stage.requestCount();
      const { status, body } = await sent(client, route, one, id);
      expect([status, JSON.stringify(body)]).toEqual([
        403,
        expect.stringContaining('cannot be reserved in advance'),
      ]);
      expect(stage.requestCount()).toBe(requestsBefore);
      expect(await client.standing(budget)).toEqual(nothing);
    },
  );
});

describe('what is free', () => {
  const checks: (() => Promise<void>)[] = [];

  test.each(casesOf('free'))('%s', async (_, { route, one }) => {
    const { client, id } = await prepared(one);
    await client.limit(tiny);
    const before = await client.standing(tiny);
    const { status, body } = await sent(client, route, one, id);
    expect([status, body]).toEqual([one.status ?? 200, expect.anything()]);
    const check = async (): Promise<void> => {
      const { spent, reserved } = await client.standing(tiny);
      expect([route, spent]).toEqual([route, Math.min(spent, before.spent)]);
      expect([route, reserved]).toEqual([route, Math.min(reserved, before.reserved)]);
    };
    await check();
    checks.push(check);
  });

  test('is not charged afterwards either', async () => {
    // Charges are settled in the order of their calls: when this one is, so are all before it.
    const last = await stage.client();
    await last.send({ method: 'POST', path: '/v1/embeddings', body: { model: 'demo', input: 'Hello' } });
    await eventually(async () => expect((await last.standing(ample)).spent).toBeGreaterThan(0));
    expect(checks).toHaveLength(casesOf('free').length);
    for (const check of checks)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await check();
  });
});

test.each(casesOf('absent'))('%s', async (_, { route, one }) => {
  const { client, id } = await prepared(one);
  const requestsBefore = stage.requestCount();
  const { status } = await sent(client, route, one, id);
  expect(status).toBe(one.status);
  expect(stage.requestCount()).toBe(requestsBefore);
});
