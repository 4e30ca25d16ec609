import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openStores } from '../../core/state/stores.ts';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { type UsagePage } from '../../core/money/usage-log/index.ts';
import { startProcess } from '../flows/_process.ts';
import type { SessionReport } from './provider.ts';
import { Speaker } from './speaker.ts';

/** Options of the run. */
export interface ProofOptions {
  readonly sessions: number;
  readonly seconds: number;
  /** MiB that the provider has for a client that reads nothing. */
  readonly flood: number;
  readonly print?: (line: string) => void;
}

/** Counts that must be zero, and the memory of the client that reads nothing. */
export interface Outcome {
  /** Directions of sessions whose frames differ between the ends: lost, doubled, changed or out of order. */
  readonly damaged: number;
  /** Sessions that did not open, or ended otherwise than by their client's wish. */
  readonly broken: number;
  /** Answers without a record of their own, or with more than one. */
  readonly unrecorded: number;
  /** Tokens by which the provider's sum differs from the records', and the records' from what was charged. */
  readonly uncharged: number;
  /** Bytes by which the gateway's resident memory grew at most while one client read nothing. */
  readonly growth: number;
}

const MiB = 1024 * 1024;
const price = { input: 10, output: 20 };

/** Many sessions at once through one gateway, both sides talking; then what either side saw and what was charged are compared. */
export async function prove({ sessions, seconds, flood, print = () => {} }: ProofOptions): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-realtime-'));
  const database = `sqlite:${join(folder, 'sluice.db')}`;
  const stores = openStores(database);
  await stores.ready();
  const keys = createApiKeys(stores);
  const ledger = openLedger(stores);
  const usageLog = openUsageLog(stores);
  const provider = fork(fileURLToPath(new URL('provider.ts', import.meta.url)));
  const { url } = await answerOf<{ url: string }>(provider);
  const plain = await keys.create({ name: 'plain' });
  const budget = { unit: 'token', period: 'total', amount: 1_000_000_000 } as const;
  const budgeted = await keys.create({ name: 'budgeted', budgets: [budget] });
  const gateway = await startProcess(
    // The client that reads nothing does so for about as long as a client may by default: a busy machine must not make that longer.
    `database: '${database}', prices: { talk: ${JSON.stringify(price)} }, realtime: { stalled: 600_000 },
     channels: [openai({ key: 'k', baseUrl: '${url}', models: ['talk'] })]`,
  );
  try {
    const began = performance.now();
    const speakers = await Promise.all(
      Array.from({ length: sessions }, (_, number) =>
        Speaker.open(gateway.url, number % 2 === 0 ? plain.value : budgeted.value, number).catch(
          () => undefined,
        ),
      ),
    );
    const open = speakers.filter((speaker) => speaker !== undefined);
    print(`${open.length} of ${sessions} sessions opened in ${Math.round(performance.now() - began)} ms`);
    for (const speaker of open) speaker.talk();
    await setTimeout(seconds * 500);

    const before = gateway.memory();
    const slow = await Speaker.open(gateway.url, plain.value, sessions);
    slow.stall();
    slow.sendEvent({ type: 'flood', mebibytes: flood });
    let peak = before;
    const until = performance.now() + seconds * 500;
    while (performance.now() < until) {
      peak = Math.max(peak, gateway.memory());
      await setTimeout(50);
    }
    const { sums: early } = await usageLog.sums({}, 'model');
    print(
      `RSS ${(before / MiB).toFixed(0)} MiB with all talking, +${((peak - before) / MiB).toFixed(1)} MiB at most with ${flood} MiB for a client that reads nothing`,
    );
    print(`${sum(early.map(({ calls }) => calls))} records while the sessions run`);
    slow.resume();
    const all = [...open, slow];
    await Promise.all(open.map((speaker) => speaker.finish()));
    await slow.until('flooded');
    const reports = new Map<number, SessionReport>();
    const reportAnswer = answerOf<{ reports: SessionReport[] }>(provider);
    provider.send('report');
    for (const report of (await reportAnswer).reports) reports.set(report.number, report);
    const closed = await Promise.all(all.map((speaker) => speaker.close()));
    for (const [index, speaker] of all.entries()) {
      const code = closed[index];
      const damage = speaker.damage(reports.get(speaker.number));
      if (code !== 1000 || damage.length > 0)
        print(
          `session ${speaker.number}${speaker === slow ? ', which read nothing for a while' : ''}: closed with ${code}; ${damage.join('; ')}`,
        );
    }

    const answers = sum([...reports.values()].map((report) => report.answers));
    const tokens = sum([...reports.values()].map((report) => report.tokens));
    gateway.signal('SIGTERM');
    await gateway.exited;
    const records = await everyRecord();
    const completed = records.filter(({ id }) => /_\d+$/.test(id));
    const recorded = sum(completed.map(({ input, output }) => input + output));
    const spent = sum(
      await Promise.all(
        [plain, budgeted].map(
          async ({ record }) => (await ledger.states(record.id, [budget]))[0]?.spent ?? 0,
        ),
      ),
    );
    const frames = sum([...reports.values()].map(({ got, sent }) => got.frames + sent.frames));
    const bytes = sum([...reports.values()].map(({ got, sent }) => got.bytes + sent.bytes));
    print(`${frames} frames, ${(bytes / MiB).toFixed(0)} MiB in both directions`);
    print(
      `${answers} answers, ${completed.length} records; ${tokens} tokens told, ${recorded} recorded, ${spent} charged`,
    );
    return {
      damaged: sum(all.map((speaker) => speaker.damage(reports.get(speaker.number)).length)),
      broken: sessions - open.length + closed.filter((code) => code !== 1000).length,
      unrecorded:
        Math.abs(answers - new Set(completed.map(({ id }) => id)).size) +
        Math.abs(answers - completed.length),
      uncharged: Math.abs(tokens - recorded) + Math.abs(recorded - spent),
      growth: peak - before,
    };
  } finally {
    await gateway.end();
    provider.disconnect();
    if (provider.exitCode === null) await once(provider, 'exit');
    await keys.stop();
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }

  async function everyRecord(): Promise<UsageRecord[]> {
    const found: UsageRecord[] = [];
    let after: string | undefined;
    do {
      const { records, next }: UsagePage = await usageLog.page({}, 500, after);
      found.push(...records);
      after = next;
    } while (after !== undefined);
    return found;
  }
}

async function answerOf<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, 'message')) as [T];
  return message;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((so, one) => so + one, 0);
}
