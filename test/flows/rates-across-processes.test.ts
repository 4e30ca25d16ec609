import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ApiKeys, NewApiKey } from '../../core/state/api-keys/index.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { startRedis, withoutRedis, type TestRedis } from '../support/redis.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { eventually } from '../support/eventually.ts';
import { startProcess, type GatewayProcess } from './_process.ts';
import { call, voices, type Answer } from './_wire.ts';

/** Several gateways on one database: as many processes, and this one, which changes keys as an operator's command would. */
class Fleet {
  readonly gateways: GatewayProcess[] = [];
  readonly apiKeys: ApiKeys;
  readonly #stores: Stores;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#stores = openStores(`sqlite:${join(folder, 'sluice.db')}`);
    this.apiKeys = createApiKeys(this.#stores);
  }

  static async start(count: number, members: string): Promise<Fleet> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'));
    const database = `database: 'sqlite:${join(folder, 'sluice.db')}', data: '${folder}'`;
    const fleet = new Fleet(folder);
    const start = () => startProcess(`${database}, ${members}`);
    // The first one makes the tables and the first key; the others find them.
    fleet.gateways.push(await start());
    fleet.gateways.push(...(await Promise.all(Array.from({ length: count - 1 }, start))));
    return fleet;
  }

  /** A new key, once every gateway knows it. */
  async key(limits: Omit<NewApiKey, 'name'>): Promise<{ readonly value: string; readonly id: string }> {
    const { value, record } = await this.apiKeys.create({ name: 'limited', ...limits });
    // No faster: an address that shows wrong keys again and again waits for its answers.
    for (const { url } of this.gateways)
      await eventually(async () => {
        if ((await list(url, value)) !== 200) throw new Error('A gateway has not heard of the key.');
      }, 100);
    return { value, id: record.id };
  }

  async end(): Promise<void> {
    await Promise.all(this.gateways.map((gateway) => gateway.end()));
    await this.#stores.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const pass = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time));

async function list(url: string, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

const model = 'via-chat';
const voice = voices['chat-completions'];
let upstream: ScriptedUpstream;
let hold = false;
let held: (() => void)[] = [];

beforeAll(async () => {
  upstream = await startUpstream(({ body }, response: ServerResponse) => {
    const reply = (): void => {
      if (/"stream":\s*true/.test(body.toString()))
        response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .end(voice.frames(['it works']).join(''));
      else
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(voice.whole('it works')));
    };
    if (hold) held.push(reply);
    else reply();
  });
});
afterAll(() => upstream.close());
beforeEach(() => {
  hold = false;
  held = [];
});

const channels = (): string =>
  `channels: [openai({ key: 'sk-upstream', baseUrl: '${upstream.url}/v1', models: ['${model}'] })]`;

/** Calls spread over the gateways, half of them streams, all at once. */
function burst(
  gateways: readonly GatewayProcess[],
  key: string,
  count: number,
  onAnswer: (answer: Answer) => void = () => {},
): Promise<Answer[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const url = gateways[index % gateways.length]?.url ?? '';
      const streams = Math.floor(index / gateways.length) % 2 === 0;
      const answer = await call({ url, key }, 'chat-completions', model, streams);
      onAnswer(answer);
      return answer;
    }),
  );
}

const count = (answers: readonly Answer[], status: number): number =>
  answers.filter((answer) => answer.status === status).length;

const missing = withoutRedis();

describe.skipIf(missing !== undefined)(
  `four gateways on one Redis${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let redis: TestRedis;
    let fleet: Fleet;

    beforeAll(async () => {
      redis = await startRedis();
      fleet = await Fleet.start(4, `shared: { url: '${redis.url}' }, ${channels()}`);
    });
    afterAll(async () => {
      await fleet.end();
      await redis.close();
    });

    test('let exactly as many calls through as a key may make in a minute, streams counted', async () => {
      const { value } = await fleet.key({ requestsPerMinute: 40 });
      const answers = await burst(fleet.gateways, value, 160);
      process.stdout.write(
        `160 calls at 4 gateways, limit 40: ${count(answers, 200)} answered, ${count(answers, 429)} refused\n`,
      );
      expect(count(answers, 200)).toBe(40);
      expect(count(answers, 429)).toBe(120);
    });

    test('let exactly as many calls run at the same time as a key may', async () => {
      const { value } = await fleet.key({ concurrency: 6 });
      hold = true;
      let refused = 0;
      const calls = burst(
        fleet.gateways,
        value,
        48,
        ({ status }) => void (refused += Number(status === 429)),
      );
      // One that comes late would find a slot that has been given back.
      await expect.poll(() => [held.length, refused]).toEqual([6, 42]);
      for (const reply of held) reply();
      const answers = await calls;
      expect([count(answers, 200), count(answers, 429)]).toEqual([6, 42]);
      hold = false;
      // A slot is given back behind the answer.
      await expect.poll(async () => count(await burst(fleet.gateways, value, 4), 200)).toBe(4);
    });

    test('count the tokens of all calls together, as they were used', async () => {
      const { value } = await fleet.key({ tokensPerMinute: 100_000 });
      expect(count(await burst(fleet.gateways, value, 8), 200)).toBe(8);
      // What a call has used is known behind its answer.
      let ended = 8;
      await eventually(async () => {
        const [last] = await burst(fleet.gateways, value, 1);
        // Twelve for each that has ended, an estimate for the one that asks.
        const left = Number(last?.headers['x-ratelimit-remaining-tokens']) + ended * 12;
        ended += 1;
        expect(left).toBeLessThanOrEqual(100_000 - 1_000);
        expect(left).toBeGreaterThan(100_000 - 1_100);
      });
    });

    test('give back the slots of a gateway that was killed, when their leases have passed', async () => {
      const { value } = await fleet.key({ concurrency: 2 });
      const victim = fleet.gateways.pop();
      if (victim === undefined) throw new Error('There is no gateway.');
      hold = true;
      const lost = burst([victim], value, 2);
      while (held.length < 2) await pass(10);
      await victim.end();
      expect((await lost).map(({ status }) => status)).toEqual([0, 0]);
      hold = false;
      const begun = performance.now();
      expect(count(await burst(fleet.gateways, value, 1), 429)).toBe(1);
      while (count(await burst(fleet.gateways, value, 1), 200) === 0) await pass(250);
      const took = performance.now() - begun;
      process.stdout.write(`slots of a killed gateway were free after ${(took / 1_000).toFixed(1)} s\n`);
    });

    test('answer every call while Redis hangs, is gone, and is back', async () => {
      const { value } = await fleet.key({ requestsPerMinute: 1_000_000 });
      const { value: small } = await fleet.key({ requestsPerMinute: 5 });
      const times: number[] = [];
      const statuses: number[] = [];
      const run = { over: false };
      const caller = async (index: number): Promise<void> => {
        while (!run.over) {
          const begun = performance.now();
          const [answer] = await burst(
            [fleet.gateways[index % fleet.gateways.length]].flatMap((one) => one ?? []),
            value,
            1,
          );
          times.push(performance.now() - begun);
          statuses.push(answer?.status ?? 0);
          await pass(30);
        }
      };
      const callers = Array.from({ length: 6 }, (_, index) => caller(index));
      await pass(300);
      redis.pause();
      const allReport = (shared: string): Promise<void> =>
        eventually(async () => {
          const states = fleet.gateways.map(({ url }) =>
            fetch(`${url}/readyz`).then((reply) => reply.json()),
          );
          for (const state of await Promise.all(states))
            expect(state).toMatchObject({ status: 'ready', shared });
        });
      await allReport('degraded');
      // Each counts for itself now, as the config says.
      const answers = await burst(fleet.gateways, small, 3 * 10);
      expect(count(answers, 200)).toBe(3 * 5);
      redis.resume();
      await allReport('ok');
      await redis.kill();
      await allReport('degraded');
      await pass(300);
      await redis.start();
      await allReport('ok');
      await pass(300);
      run.over = true;
      await Promise.all(callers);
      process.stdout.write(
        `${times.length} calls while Redis hung, was gone and came back: the slowest took ${Math.max(...times).toFixed(0)} ms\n`,
      );
      expect(statuses.every((status) => status === 200)).toBe(true);
      await allReport('ok');
      for (const { output } of fleet.gateways)
        // Lines of the log come by another way than responses, and later on a busy machine.
        await eventually(() => {
          const log = output.join('');
          // Once for each time it was gone; a machine that stands still for a moment may make it seem so once more.
          const gone = log.match(/the shared store does not respond/g)?.length ?? 0;
          expect(gone).toBeGreaterThanOrEqual(2);
          expect(gone).toBeLessThan(6);
          expect(log.match(/the shared store responds again/g)).toHaveLength(gone);
          expect(log).not.toContain('a secret');
          expect(log).not.toContain('a%20secret');
        });
      const { value: fresh } = await fleet.key({ requestsPerMinute: 10 });
      expect(count(await burst(fleet.gateways, fresh, 30), 200)).toBe(10);
    });
  },
);

describe.skipIf(missing !== undefined)('a gateway that shall refuse what it cannot count', () => {
  test('answers 503 for keys with limits while Redis is gone, and others as ever', async () => {
    const redis = await startRedis();
    const fleet = await Fleet.start(1, `shared: { url: '${redis.url}', whenDown: 'refuse' }, ${channels()}`);
    try {
      const { value: limited } = await fleet.key({ concurrency: 5 });
      const { value: free } = await fleet.key({});
      expect(count(await burst(fleet.gateways, limited, 2), 200)).toBe(2);
      await redis.kill();
      const [refused] = await burst(fleet.gateways, limited, 1);
      expect(refused?.status).toBe(503);
      expect(refused?.headers['retry-after']).toBe('1');
      expect(refused?.text).toContain('The limits of this call cannot be checked at the moment.');
      expect(count(await burst(fleet.gateways, free, 2), 200)).toBe(2);
    } finally {
      await fleet.end();
      await redis.close();
    }
  });
});

describe('two gateways on one database', () => {
  test('refuse a key that was revoked, wherever it was revoked', async () => {
    const fleet = await Fleet.start(2, channels());
    try {
      const { value, id } = await fleet.key({});
      expect(count(await burst(fleet.gateways, value, 4), 200)).toBe(4);
      await fleet.apiKeys.revoke(id);
      const revoked = performance.now();
      const until = fleet.gateways.map(async ({ url }) => {
        while ((await list(url, value)) !== 401) await pass(10);
        return performance.now() - revoked;
      });
      const times = await Promise.all(until);
      process.stdout.write(
        `revoked everywhere after ${times.map((time) => time.toFixed(0)).join(' and ')} ms\n`,
      );
      for (const { status } of await burst(fleet.gateways, value, 2)) expect(status).toBe(401);
    } finally {
      await fleet.end();
    }
  });
});
