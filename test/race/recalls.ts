import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openLedger } from '../../core/money/ledger/open.ts';
import type { BudgetState } from '../../core/money/ledger/index.ts';
import type { Budget } from '../../core/sdk/budget.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openStores } from '../../core/state/stores.ts';
import { makeCall } from './callers.ts';
import { startGateways, type RacingGateway } from './gateways.ts';
import { mostOutput, startProvider } from './provider.ts';

export interface RecallsOptions {
  readonly gateways: number;
  /** A PostgreSQL database; absent: an SQLite file. */
  readonly database?: string;
  readonly print?: (line: string) => void;
}

/** Counts that must be zero. */
export interface RecallFaults {
  /** Micro-dollars spent and reserved beyond the budget at any time that was looked at. */
  readonly overshoot: number;
  /** Calls that were refused though what they need was not used. */
  readonly unfair: number;
  /** Micro-dollars that are still reserved, or reserved ahead, when nothing runs any more. */
  readonly left: number;
}

const price = { input: 10, output: 20 };
/** Seconds. */
const lease = 5;
/** Callers of each gateway that call one after the other. */
const callers = 8;
/** The most that an ordinary call may come to, with room to spare: some 300 bytes of input, and its output limit. */
const ordinary = 300 * price.input + mostOutput * price.output;

/**
 * Gateways under load reserve ahead for a key; then a call of another gateway needs nearly all that no call uses, and the same when one of the
 * gateways was killed.
 */
export async function raceForRecalls({
  gateways: count,
  database,
  print = () => {},
}: RecallsOptions): Promise<RecallFaults> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-recalls-'));
  const url = database ?? `sqlite:${join(folder, 'sluice.db')}`;
  const stores = openStores(url);
  const ledger = openLedger(stores);
  const provider = await startProvider();
  const amount = 400 * callers * count * ordinary;
  const budget: Budget = { unit: 'micro-dollar', period: 'total', amount };
  const { value, record } = await createApiKeys(stores).create({ name: 'recalls', budgets: [budget] });
  let gateways: readonly RacingGateway[] = [];
  let [overshoot, unfair, served, mostAhead] = [0, 0, 0, 0];
  const look = async (): Promise<BudgetState> => {
    const [state] = await ledger.states(record.id, [budget]);
    if (state === undefined) throw new Error('The budget has no state.');
    overshoot = Math.max(overshoot, state.spent + state.reserved + state.ahead - amount);
    mostAhead = Math.max(mostAhead, state.ahead);
    return state;
  };
  /** Asks for all but what ordinary calls may need meanwhile. Returns how long the answer took. */
  const requestRemainder = async (gateway: RacingGateway): Promise<number> => {
    const { spent, ahead } = await look();
    const rest = amount - spent - 3 * callers * count * ordinary;
    const began = performance.now();
    const { status } = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'race-m',
        max_tokens: Math.floor(rest / price.output) - 1_000,
        messages: [{ role: 'user', content: `call-${9e6 + served}-fine` }],
      }),
    });
    if (status !== 200) unfair += 1;
    const took = performance.now() - began;
    print(
      `a call for what nobody uses, ${ahead} of it reserved ahead: ${status} after ${Math.round(took)} ms`,
    );
    return took;
  };
  try {
    gateways = await startGateways(count, { folder, database: url, upstream: provider.url, lease, price });
    const load = { isOver: false };
    const calling = gateways.flatMap((gateway, index) =>
      Array.from({ length: callers }, async (_, caller) => {
        for (let number = (index * callers + caller) * 10_000; !load.isOver; number += 1) {
          // oxlint-disable-next-line no-await-in-loop -- one call after the other
          const { status } = await makeCall(
            gateway.url,
            value,
            { number, stream: true, fate: 'fine' },
            provider,
          );
          if (status === 200) served += 1;
          else if (status === 429) unfair += 1;
          else break;
        }
      }),
    );
    const [killed, ...others] = gateways;
    const [asking] = others;
    if (killed === undefined || asking === undefined) throw new Error('It takes two gateways.');
    while ((await look()).ahead === 0) await setTimeout(10);
    await requestRemainder(asking);
    while ((await look()).ahead === 0) await setTimeout(10);
    await killed.kill();
    // What was reserved ahead by the one that was killed is free when its lease is over.
    await setTimeout((lease + 1) * 1_000);
    await requestRemainder(asking);
    load.isOver = true;
    await Promise.all(calling);
    const deadline = performance.now() + 30_000;
    const held = async (): Promise<number> => {
      const { reserved, ahead } = await look();
      return reserved + ahead;
    };
    while ((await held()) > 0 && performance.now() < deadline) await setTimeout(100);
    print(`${served} ordinary calls meanwhile, reserved ahead ${mostAhead} of ${amount} at the most`);
    return { overshoot: Math.max(0, overshoot), unfair, left: await held() };
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await provider.close();
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
