import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import doubao from '../../channels/doubao.ts';
import gemini from '../../channels/gemini.ts';
import jimeng from '../../channels/jimeng/index.ts';
import kling from '../../channels/kling/index.ts';
import sora from '../../channels/sora.ts';
import vidu from '../../channels/vidu.ts';
import type { ChannelEntry } from '../../core/sdk/define.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { type Ledger } from '../../core/money/ledger/index.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { type UsageLog } from '../../core/money/usage-log/index.ts';
import quota from '../../plugins/quota/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { fetchRaw } from './_wire.ts';
import { reason, vendors, VideoUpstream, type Vendor } from './_video-vendors.ts';

type Json = Record<string, unknown>;
const kinds = { sora, kling, jimeng, doubao, vidu, gemini } as const;
const provider = new VideoUpstream();
let upstream: ScriptedUpstream;
let gateway: TestGateway;
let ledger: Ledger;
let usageLog: UsageLog;

function channelOf({ kind, key, base, model }: Vendor): ChannelEntry {
  return kinds[kind as keyof typeof kinds]({
    key,
    baseUrl: `${upstream.url}/${kind}${base}`,
    models: [model],
  });
}

beforeAll(async () => {
  upstream = await startUpstream(provider.script);
  provider.address = `${upstream.url}/files`;
  gateway = await startGateway({
    plugins: [
      videoTasks({ poll: { first: 40, most: 60 }, fresh: 0, publicUrl: 'https://gate.example' }),
      quota(),
    ],
    channels: vendors.map(channelOf),
    prices: Object.fromEntries(vendors.map(({ model }) => [model, { perSecond: 0.1 }])),
  });
  ledger = openLedger(gateway.stores);
  usageLog = openUsageLog(gateway.stores);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
afterEach(() => {
  const failures = gateway.lines.filter(({ level }) => level === 'error');
  if (provider.strangers.length + failures.length > 0)
    throw new Error(`Something went wrong unseen: ${JSON.stringify([provider.strangers, failures])}`);
});

async function json(path: string, body?: Json): Promise<Json> {
  const answer = await fetchRaw(gateway, path, body === undefined ? {} : { body });
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
  return JSON.parse(answer.text) as Json;
}

async function make(
  vendor: Vendor,
): Promise<{ readonly id: string; readonly theirs: string; readonly answer: Json }> {
  const answer = await json(vendor.create.path, vendor.create.body);
  return { id: vendor.idIn(answer), theirs: provider.last, answer };
}

async function seen(vendor: Vendor, id: string): Promise<ReturnType<Vendor['read']>> {
  const { path, body } = vendor.poll(id);
  return vendor.read(await json(path, body));
}

const secondsOf: Readonly<Record<string, number>> = {
  sora: 8,
  kling: 10,
  jimeng: 5,
  doubao: 5,
  vidu: 5,
  gemini: 8,
};

describe.each(vendors.map((vendor) => [vendor.kind, vendor] as const))('a task at %s', (kind, vendor) => {
  test('goes through its states in the words of its own format, and is paid for once', async () => {
    const { value, record } = await gateway.apiKeys.create({ name: kind });
    const own = { url: gateway.url, key: value };
    const made = await fetchRaw(own, vendor.create.path, { body: vendor.create.body });
    expect(made.status).toBe(200);
    const id = vendor.idIn(JSON.parse(made.text) as Json);
    const theirs = provider.last;
    expect(made.text).not.toContain(theirs);
    const pollTask = async () => {
      const { path, body } = vendor.poll(id);
      const answer = await fetchRaw(own, path, body === undefined ? {} : { body });
      expect(answer.text).not.toContain(theirs);
      expect(answer.text).not.toContain('127.0.0.1');
      return vendor.read(JSON.parse(answer.text) as Json);
    };
    expect((await pollTask()).state).toBe(vendor.words.queued);
    provider.stages.set(theirs, 'in_progress');
    expect((await pollTask()).state).toBe(vendor.words.in_progress);
    provider.stages.set(theirs, 'completed');
    await expect.poll(async () => (await pollTask()).state).toBe(vendor.words.completed);
    expect((await pollTask()).url).toBe(`https://gate.example/v1/videos/${id}/content`);
    const cost = (secondsOf[kind] ?? 0) * 100_000;
    const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1e9 }] as const;
    expect(await ledger.states(record.id, budgets)).toMatchObject([{ spent: cost, reserved: 0 }]);
    // Nobody asks about what is over.
    const questions = provider.questions.length;
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(provider.questions.slice(questions).filter((one) => one === theirs)).toEqual([]);
  });

  test('that fails tells why, and gives back what was charged, once', async () => {
    const { value, record } = await gateway.apiKeys.create({ name: `${kind} fails` });
    const own = { url: gateway.url, key: value };
    const made = await fetchRaw(own, vendor.create.path, { body: vendor.create.body });
    const id = vendor.idIn(JSON.parse(made.text) as Json);
    const theirs = provider.last;
    const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1e9 }] as const;
    const cost = (secondsOf[kind] ?? 0) * 100_000;
    expect(await ledger.states(record.id, budgets)).toMatchObject([{ spent: cost }]);
    provider.stages.set(theirs, 'failed');
    const pollTask = async () => {
      const { path, body } = vendor.poll(id);
      const answer = await fetchRaw(own, path, body === undefined ? {} : { body });
      return vendor.read(JSON.parse(answer.text) as Json);
    };
    await expect.poll(async () => (await pollTask()).state).toBe(vendor.words.failed);
    expect((await pollTask()).reason).toContain(reason);
    expect(await ledger.states(record.id, budgets)).toMatchObject([{ spent: 0, reserved: 0 }]);
    const { records } = await usageLog.page({ keyId: record.id }, 10);
    expect(
      records
        .map(({ operation, microDollars, ended }) => ({ operation, microDollars, ended }))
        .toSorted((a, b) => (a.microDollars ?? 0) - (b.microDollars ?? 0)),
    ).toEqual([
      { operation: 'refund', microDollars: -cost, ended: 'complete' },
      { operation: 'create-video', microDollars: cost, ended: 'complete' },
    ]);
    const charge = records.find(({ operation }) => operation === 'create-video');
    expect(records.find(({ operation }) => operation === 'refund')?.reason).toContain(charge?.id);
  });

  test('can be read in every other format', async () => {
    const { id, theirs } = await make(vendor);
    provider.stages.set(theirs, 'completed');
    for (const other of vendors) {
      await expect.poll(async () => (await seen(other, id)).state).toBe(other.words.completed);
      expect((await seen(other, id)).url).toBe(`https://gate.example/v1/videos/${id}/content`);
    }
    const generic = await json(`/v1/video/generations/${id}`);
    expect(generic).toMatchObject({ task_id: id, status: 'completed', format: 'mp4', model: vendor.model });
  });

  test('can be made in every other format', async () => {
    for (const other of vendors) {
      const body =
        other.kind === 'gemini'
          ? other.create.body
          : Object.fromEntries(
              Object.entries(other.create.body).map(([name, value]) =>
                ['model', 'model_name', 'req_key'].includes(name) ? [name, vendor.model] : [name, value],
              ),
            );
      const path = other.create.path.replace(other.model, vendor.model);
      const before = provider.made.length;
      const id = other.idIn(await json(path, body));
      expect(provider.made.slice(before).map((one) => one.vendor)).toEqual([kind]);
      expect([other.words.queued, other.words.in_progress]).toContain((await seen(other, id)).state);
    }
    const generic = await json('/v1/video/generations', { model: vendor.model, prompt: 'the moon' });
    expect(generic).toMatchObject({ object: 'video', model: vendor.model });
    expect(generic.id).toBe(generic.task_id);
  });

  test('of somebody else does not exist', async () => {
    const { id } = await make(vendor);
    const { value } = await gateway.apiKeys.create({ name: 'stranger' });
    const { path, body } = vendor.poll(id);
    const answer = await fetchRaw({ url: gateway.url, key: value }, path, body === undefined ? {} : { body });
    expect(answer.status).toBe(404);
  });
});
