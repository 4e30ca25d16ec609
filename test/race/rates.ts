import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import type { SharedStoreSettings } from '../../core/settings/shared.ts';
import { openStores } from '../../core/state/stores.ts';
import { startUpstream } from '../support/upstream.ts';
import { startGateways, type RacingGateway } from './gateways.ts';

export interface RatesOptions {
  readonly gateways: number;
  /** Calls at the same time through each gateway. */
  readonly calls: number;
  /** The Redis that has the limits. */
  readonly redis: SharedStoreSettings;
  /** Another database than an SQLite file of the race's own. */
  readonly database?: string;
  readonly print?: (line: string) => void;
}

/** Counts that must be zero. */
export interface RateFaults {
  /** Calls that were answered beyond the requests per minute, and calls that ran at one time beyond the concurrency. */
  readonly overshoot: number;
  /** Calls that were refused though the limit was not reached, without those that a busy Redis may have counted and not answered in time. */
  readonly unfair: number;
  /** Permits that nobody has given back when nothing runs any more. */
  readonly left: number;
}

/** Many calls at once through several gateways with a key that has requests per minute, and with one that has a concurrency. */
export async function raceForRates({
  gateways: count,
  calls,
  redis,
  database,
  print = () => {},
}: RatesOptions): Promise<RateFaults> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rates-'));
  const url = database ?? `sqlite:${join(folder, 'sluice.db')}`;
  const stores = openStores(url);
  let [running, most] = [0, 0];
  const provider = await startUpstream(async (_request, response) => {
    most = Math.max(most, (running += 1));
    await setTimeout(150);
    running -= 1;
    const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }));
  });
  let gateways: readonly RacingGateway[] = [];
  try {
    const total = count * calls;
    const perMinute = Math.floor(total / 3);
    const concurrency = 20;
    const keys = createApiKeys(stores);
    const minute = await keys.create({ name: 'minute', requestsPerMinute: perMinute });
    const permits = await keys.create({ name: 'permits', concurrency });
    const price = { input: 1, output: 1 };
    gateways = await startGateways(count, {
      folder,
      database: url,
      upstream: provider.url,
      lease: 10,
      price,
      redis: { ...redis, whenDown: 'refuse' },
    });
    let lost = 0;
    /** Asks again where Redis did not answer in time: what it would have said is not known. */
    const sendCall = async (gateway: RacingGateway, key: string): Promise<number> => {
      for (let tries = 0; ; tries += 1) {
        // oxlint-disable no-await-in-loop -- one call after the other
        const response = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'race-m', messages: [{ role: 'user', content: 'yes?' }] }),
        });
        await response.text();
        if (response.status !== 503 || tries === 50) return response.status;
        lost += 1;
        await setTimeout(100);
        // oxlint-enable no-await-in-loop
      }
    };
    const all = (key: string, each: number): Promise<readonly number[]> =>
      Promise.all(gateways.flatMap((gateway) => Array.from({ length: each }, () => sendCall(gateway, key))));
    const answered = (statuses: readonly number[]): number =>
      statuses.filter((status) => status === 200).length;

    const counted = answered(await all(minute.value, calls));
    const lostThen = lost;
    print(
      `${total} calls with ${perMinute} requests per minute: ${counted} answered, Redis late for ${lost}`,
    );
    most = 0;
    const ran = answered(await all(permits.value, calls));
    const atOnce = most;
    print(`${total} calls with a concurrency of ${concurrency}: ${ran} answered, at most ${atOnce} at once`);
    // Permits are given back behind the answer.
    await setTimeout(500);
    const after = answered(await all(permits.value, concurrency / count));
    return {
      overshoot: Math.max(0, counted - perMinute) + Math.max(0, atOnce - concurrency),
      unfair: Math.max(0, perMinute - counted - lostThen),
      left: concurrency - after,
    };
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await provider.close();
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
