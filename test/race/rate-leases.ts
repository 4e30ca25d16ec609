import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openRates } from '../../core/money/rates/open.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import type { SharedStoreSettings } from '../../core/settings/shared.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openStores } from '../../core/state/stores.ts';
import { startUpstream } from '../support/upstream.ts';
import { startGateways, type RacingGateway } from './gateways.ts';

export interface RateLeasesOptions {
  readonly gateways: number;
  /** Calls per minute of the key that is limited in them; the others are in proportion. */
  readonly perMinute: number;
  readonly redis: SharedStoreSettings;
  /** Another database than an SQLite file of the race's own. */
  readonly database?: string;
  readonly print?: (line: string) => void;
}

/** Counts that must be zero. */
export interface RateLeaseFaults {
  /** Requests and tokens beyond the limit within any minute, and calls that ran at one time beyond the concurrency. */
  readonly overshoot: number;
  /** Requests, tokens and permits that were refused though nothing used them. */
  readonly unfair: number;
  /** Permits that nobody has given back when nothing runs any more. */
  readonly left: number;
}

/** Longest time in ms of a lease, and until all is given back. */
const leaseTime = 17_000;
const minute = 60_000;
const concurrency = 12;
/** Tokens of a call: what it is expected to use at the most, and what it uses. */
const maxTokens = 60;
const usedTokens = 45;
/** Callers of each key in each gateway. */
const callers = 6;

interface Racer {
  readonly key: { readonly record: ApiKey; readonly value: string };
  /** Times at which calls reached the provider. */
  readonly arrivals: number[];
  running: number;
  most: number;
  readonly answered: Map<RacingGateway, number>;
  refused: number;
}

/**
 * Three keys at once, each with requests per minute, tokens per minute and a concurrency, of which another one is reached with each; called
 * through gateways of which one is killed. Then one gateway asks for all that is left, most of which others hold for calls that follow.
 */
export async function raceForRateLeases({
  gateways: count,
  perMinute,
  redis,
  database,
  print = () => {},
}: RateLeasesOptions): Promise<RateLeaseFaults> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rate-leases-'));
  const url = database ?? `sqlite:${join(folder, 'sluice.db')}`;
  const stores = openStores(url);
  const racers = new Map<string, Racer>();
  const provider = await startUpstream(async (request, response) => {
    const { messages } = JSON.parse(request.body.toString()) as {
      readonly messages: readonly { readonly content: string }[];
    };
    const racer = racers.get(messages[0]?.content ?? '');
    if (racer !== undefined) {
      racer.arrivals.push(performance.now());
      racer.most = Math.max(racer.most, (racer.running += 1));
    }
    await setTimeout(20);
    if (racer !== undefined) racer.running -= 1;
    const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 5, completion_tokens: usedTokens - 5, total_tokens: usedTokens };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }));
  });
  let gateways: readonly RacingGateway[] = [];
  const rates = openRates({ ...redis, whenDown: 'refuse' }, () => {});
  try {
    const keys = createApiKeys(stores);
    const ample = { requestsPerMinute: 1e6, tokensPerMinute: 1e9, concurrency: 1e4 };
    const tokensPerMinute = perMinute * usedTokens;
    const limits = {
      requests: { ...ample, requestsPerMinute: perMinute },
      tokens: { ...ample, tokensPerMinute },
      permits: { ...ample, concurrency },
    };
    for (const [name, limit] of Object.entries(limits)) {
      const key = await keys.create({ name, ...limit });
      racers.set(name, { key, arrivals: [], running: 0, most: 0, answered: new Map(), refused: 0 });
    }
    gateways = await startGateways(count, {
      folder,
      database: url,
      upstream: provider.url,
      lease: 10,
      price: { input: 1, output: 1 },
      redis: { ...redis, whenDown: 'refuse' },
    });
    const sendCall = async (gateway: RacingGateway, name: string): Promise<number> => {
      const racer = racers.get(name);
      if (racer === undefined) return 0;
      try {
        const response = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${racer.key.value}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            model: 'race-m',
            max_tokens: maxTokens - 10,
            messages: [{ role: 'user', content: name }],
          }),
        });
        await response.text();
        if (response.status === 200) racer.answered.set(gateway, (racer.answered.get(gateway) ?? 0) + 1);
        if (response.status === 429) racer.refused += 1;
        return response.status;
      } catch {
        // Its gateway was killed.
        return 0;
      }
    };
    /** Returns the remaining amount of a limit in the store. */
    const left = async (name: string, what: 'requests' | 'tokens', limit: number): Promise<number> => {
      const subject = `key:${racers.get(name)?.key.record.id}:${what}`;
      const { states } = await rates.take([{ subject, limit, cost: 0 }]);
      return states[0]?.remaining ?? 0;
    };

    const load = { isOver: false };
    const [killed, asking] = gateways;
    if (killed === undefined || asking === undefined) throw new Error('It takes two gateways.');
    const isAlive = (gateway: RacingGateway): boolean => gateway !== killed || killedAt === 0;
    let killedAt = 0;
    const calling = gateways.flatMap((gateway) =>
      [...racers.keys()].flatMap((name) =>
        Array.from({ length: callers }, async () => {
          while (!load.isOver && isAlive(gateway)) {
            // oxlint-disable no-await-in-loop -- one call after the other
            const status = await sendCall(gateway, name);
            if (status === 429) await setTimeout(100);
            // oxlint-enable no-await-in-loop
          }
        }),
      ),
    );
    const began = performance.now();
    const answeredOf = (name: string): number =>
      [...(racers.get(name)?.answered.values() ?? [])].reduce((sum, one) => sum + one, 0);
    const isSlow = (): boolean => performance.now() - began > (2 * minute) / 3;
    while (answeredOf('requests') < perMinute / 4 && !isSlow()) await setTimeout(20);
    killedAt = performance.now();
    await killed.kill();
    while (answeredOf('requests') < perMinute / 2 && !isSlow()) await setTimeout(20);
    load.isOver = true;
    await Promise.all(calling);
    print(
      `three keys called through ${count} gateways for ${((performance.now() - began) / 1_000).toFixed(1)} s, the first of which was killed`,
    );
    for (const [name, { answered, refused, most }] of racers)
      print(
        `${name}: answered by each gateway ${gateways.map((one) => answered.get(one) ?? 0).join(', ')}, ${refused} refused, at most ${most} at once`,
      );

    // Others hold some of the rest for calls that follow: one gateway takes it all at once.
    let unfair = 0;
    const statuses = await Promise.all(Array.from({ length: perMinute }, () => sendCall(asking, 'requests')));
    const openRequests = await left('requests', 'requests', perMinute);
    if (statuses.includes(429)) unfair += openRequests;
    const tokenStatuses: number[] = [];
    while (!tokenStatuses.includes(429) && tokenStatuses.length < 2 * perMinute)
      tokenStatuses.push(
        ...(await Promise.all(Array.from({ length: 20 }, () => sendCall(asking, 'tokens')))),
      );
    // What a call was expected to use beyond its usage is given back when it has ended.
    const openTokens = await left('tokens', 'tokens', tokensPerMinute);
    unfair += Math.max(0, openTokens - 20 * maxTokens);
    const took = performance.now() - began;

    await setTimeout(Math.max(0, killedAt + leaseTime - performance.now()));
    const warm = await Promise.all(gateways.slice(1).map((gateway) => sendCall(gateway, 'permits')));
    const atOnce = await Promise.all(
      Array.from({ length: concurrency - 1 }, () => sendCall(asking, 'permits')),
    );
    const refusedPermits = [...warm, ...atOnce].filter((status) => status === 429).length;

    const overshoot =
      beyond(racers.get('requests'), perMinute, 1) +
      beyond(racers.get('tokens'), tokensPerMinute, usedTokens) +
      Math.max(0, (racers.get('permits')?.most ?? 0) - concurrency);
    const lost = perMinute - openRequests - (racers.get('requests')?.arrivals.length ?? 0);
    print(
      `one gateway has asked for the rest, all in ${(took / 1_000).toFixed(1)} s; of ${perMinute} requests ${openRequests} are left, and ${Math.max(0, lost)} were lost with the gateway that was killed`,
    );
    return { overshoot, unfair, left: refusedPermits };
  } finally {
    await rates.close();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await provider.close();
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The most beyond a limit that came within any minute. */
function beyond(racer: Racer | undefined, limit: number, cost: number): number {
  const arrivals = racer?.arrivals ?? [];
  let [from, most] = [0, 0];
  arrivals.forEach((at, index) => {
    while ((arrivals[from] ?? 0) <= at - minute) from += 1;
    most = Math.max(most, (index - from + 1) * cost);
  });
  return Math.max(0, most - limit);
}
