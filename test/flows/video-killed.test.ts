import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openStores } from '../../core/state/stores.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { kindFiles } from '../support/kind-files.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startProcess, type GatewayProcess } from './_process.ts';
import { fetchRaw } from './_wire.ts';
import { reason, vendors, VideoUpstream, type Vendor } from './_video-vendors.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const provider = new VideoUpstream();
const folder = mkdtempSync(join(tmpdir(), 'sluice-video-'));
const database = `sqlite:${join(folder, 'sluice.db')}`;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream(provider.script);
  provider.address = `${upstream.url}/files`;
});
afterAll(async () => {
  await upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

function start(): Promise<GatewayProcess> {
  const channels = vendors.map(
    ({ kind, key, base, model }) =>
      `(await import('${kindFiles.get(kind)}')).default({ key: '${key}', baseUrl: '${upstream.url}/${kind}${base}', models: ['${model}'] })`,
  );
  const prices = Object.fromEntries(vendors.map(({ model }) => [model, { perSecond: 0.1 }]));
  return startProcess(`
    database: '${database}',
    prices: ${JSON.stringify(prices)},
    plugins: [(await import('${root}plugins/video-tasks/index.ts')).default({ poll: { first: 100, most: 200, patience: 1000 }, fresh: 0 })],
    channels: [${channels.join(', ')}],
  `);
}

interface Pair {
  readonly vendor: Vendor;
  readonly good: string;
  readonly bad: string;
}

test('a gateway that is killed in the middle loses no task and no money, at any provider', async () => {
  const first = await start();
  const pairs: Pair[] = [];
  try {
    for (const vendor of vendors) {
      const ids: string[] = [];
      for (const stage of ['completed', 'failed'] as const) {
        const answer = await fetchRaw(first, vendor.create.path, { body: vendor.create.body });
        expect([vendor.kind, answer.status]).toEqual([vendor.kind, 200]);
        ids.push(vendor.idIn(JSON.parse(answer.text) as Record<string, unknown>));
        provider.stages.set(provider.last, 'in_progress');
        // Where it will be when nobody looks.
        later.set(provider.last, stage);
      }
      pairs.push({ vendor, good: ids[0] ?? '', bad: ids[1] ?? '' });
    }
    const states = async () => Promise.all(pairs.map(async ({ vendor, good }) => state(first, vendor, good)));
    await expect.poll(states).toEqual(pairs.map(({ vendor }) => vendor.words.in_progress));
  } finally {
    first.signal('SIGKILL');
    await first.exited;
    await first.end();
  }
  for (const [id, stage] of later) provider.stages.set(id, stage);

  const second = await start();
  try {
    for (const { vendor, good, bad } of pairs) {
      await expect.poll(() => state(second, vendor, good)).toBe(vendor.words.completed);
      await expect.poll(() => state(second, vendor, bad)).toBe(vendor.words.failed);
      const { path, body } = vendor.poll(bad);
      const failed = await fetchRaw(second, path, body === undefined ? {} : { body });
      expect(failed.text).toContain(reason);
    }
  } finally {
    await second.end();
  }
  expect(provider.made).toHaveLength(vendors.length * 2);
  expect(provider.strangers).toEqual([]);

  const stores = openStores(database);
  try {
    const records = (await openUsageLog(stores).page({}, 100)).records.filter(
      ({ operation }) => operation === 'create-video' || operation === 'refund',
    );
    const charges = records.filter(({ operation }) => operation === 'create-video');
    const refunds = records.filter(({ operation }) => operation === 'refund');
    expect(charges).toHaveLength(vendors.length * 2);
    expect(refunds).toHaveLength(vendors.length);
    expect(refunds.map(({ model }) => model).toSorted()).toEqual(
      vendors.map(({ model }) => model).toSorted(),
    );
    const sum = records.reduce((total, { microDollars }) => total + (microDollars ?? 0), 0);
    expect(sum).toBe((8 + 10 + 5 + 5 + 5 + 8) * 100_000);
    const [keyId = ''] = new Set(charges.map((record) => record.keyId));
    const [total] = await openLedger(stores).states(keyId, [
      { unit: 'micro-dollar', period: 'total', amount: 1e9 },
    ]);
    expect(total?.spent).toBe(sum);
  } finally {
    await stores.close();
  }
});

const later = new Map<string, 'completed' | 'failed'>();

async function state(gateway: GatewayProcess, vendor: Vendor, id: string): Promise<string> {
  const { path, body } = vendor.poll(id);
  const answer = await fetchRaw(gateway, path, body === undefined ? {} : { body });
  return vendor.read(JSON.parse(answer.text) as Record<string, unknown>).state;
}
