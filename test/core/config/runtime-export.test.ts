import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { readConfig, type LoadedConfig } from '../../../core/config/config.ts';
import { loadConfig } from '../../../core/config/load-config.ts';
import { nextSnapshot } from '../../../core/config/runtime-config/changes.ts';
import { RuntimeDefinitions } from '../../../core/config/runtime-config/definitions.ts';
import { exportRuntime } from '../../../core/config/runtime-config/export.ts';
import { RuntimeConfig } from '../../../core/config/runtime-config/index.ts';
import { buildWithRuntime } from '../../../core/config/runtime-config/load.ts';
import { mergeRuntime } from '../../../core/config/runtime-config/merge.ts';
import { createLog } from '../../../core/log.ts';
import { Upkeep } from '../../../core/state/upkeep.ts';
import { problemsOfConfig } from '../../../core/try-gateway.ts';
import type {
  EntryKind,
  RuntimeConfigStore,
  RuntimeEntry,
  RuntimeSnapshot,
} from '../../../core/state/runtime-config/index.ts';
import type { JsonValue } from '../../../core/model/json.ts';

// Inside the repository, so that `sluice` means the same there as in `plugins/`.
const home = new URL('../../../', import.meta.url).pathname;
mkdirSync(join(home, 'data/tests'), { recursive: true });
const folder = mkdtempSync(join(home, 'data/tests/exported-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const empty = readConfig({}, join(folder, 'gateway.config.ts'));

const names = fc.constantFrom('one', 'two-x', 'three/3*', '__proto__', 'a "quote" \\');
const channel = fc.record({
  kind: fc.constant<EntryKind>('channel'),
  name: names,
  value: fc.record({
    type: fc.constantFrom('openai', 'anthropic'),
    options: fc.record({
      key: fc.constantFrom('sk-first-secret-0001', 'sk-second-secret-0002'),
      models: fc.uniqueArray(fc.constantFrom('m-1', 'm-2', 'm-*'), { minLength: 1 }),
      priority: fc.integer({ min: -3, max: 3 }),
    }),
  }),
});
const other = fc.oneof(
  fc.record({
    kind: fc.constant<EntryKind>('alias'),
    name: names,
    value: fc.constantFrom('m-1', "it's `${x}`"),
  }),
  fc.record({
    kind: fc.constant<EntryKind>('price'),
    name: names,
    value: fc.record({ input: fc.nat(9), output: fc.nat(9) }),
  }),
  fc.record({
    kind: fc.constant<EntryKind>('access'),
    name: fc.constantFrom('*', 'team_x'),
    value: fc.constant(['m-*']),
  }),
  fc.record({
    kind: fc.constant<EntryKind>('plugin'),
    name: fc.constant('rate-limit.default'),
    value: fc.constant({ concurrency: 4 }),
  }),
);
/** Each makes, replaces or removes an entry. */
const changes = fc.array(fc.tuple(fc.oneof(channel, other), fc.boolean()), { maxLength: 12 });

function snapshotOf(
  sequence: readonly (readonly [{ kind: EntryKind; name: string; value: unknown }, boolean])[],
): RuntimeSnapshot {
  const entries = new Map<string, RuntimeEntry>();
  for (const [{ kind, name, value }, isRemoved] of sequence) {
    const times = { createdAt: entries.size, updatedAt: 0 };
    if (isRemoved) entries.delete(`${kind}:${name}`);
    else
      entries.set(`${kind}:${name}`, {
        kind,
        name,
        value: value as JsonValue,
        secretsAt: {},
        enabled: true,
        version: 1,
        ...times,
      });
  }
  return { revision: 1, entries: [...entries.values()], order: [], bytes: 0 };
}

/** Returns the effective config in a comparable form. */
function effective({ channels, settings, pluginOptions, plugins }: LoadedConfig) {
  const listed = plugins.map(({ entry }) => [entry.spec.name, entry.options] as const);
  return {
    channels: channels.map(({ entry }) => [entry.spec.name, entry.options]),
    prices: settings.prices,
    plugins: Object.fromEntries([...(pluginOptions ?? []), ...listed]),
  };
}

test('the secrets of all entries are read together, each once, and with one end of their time', async () => {
  const config = readConfig({ runtimeConfig: { secrets: ['own:*'] } }, join(folder, 'gateway.config.ts'));
  const all = Promise.withResolvers<void>();
  const signals: (AbortSignal | undefined)[] = [];
  const get = async ({ name }: { readonly name: string }, signal?: AbortSignal) => {
    signals.push(signal);
    if (signals.length === 3) all.resolve();
    await all.promise;
    return { text: `key-of-${name}` };
  };
  const entries = ['a', 'b', 'c', 'a'].map((secret, index) => ({
    kind: 'channel' as const,
    name: `channel-${index}`,
    value: { type: 'openai', options: { key: { from: `own:${secret}` } } },
  }));
  const snapshot = snapshotOf(entries.map((entry) => [entry, false]));
  const merged = await mergeRuntime(
    { ...config, secrets: { get } },
    snapshot,
    new RuntimeDefinitions(config),
  );
  expect(merged.problems).toEqual([]);
  expect(merged.config.channels.map(({ entry }) => entry.options['key'])).toEqual(
    ['a', 'b', 'c', 'a'].map((secret) => `key-of-${secret}`),
  );
  expect(signals).toHaveLength(3);
  expect(new Set(signals).size).toBe(1);
  expect(signals[0]).toBeInstanceOf(AbortSignal);
});

test('any sequence of changes, exported and put into the config file, comes to the same configuration', async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(changes, async (sequence) => {
      const snapshot = snapshotOf(sequence);
      const definitions = new RuntimeDefinitions(empty);
      const merged = await mergeRuntime(empty, snapshot, definitions);
      expect(merged.problems).toEqual([]);
      const { text, variables } = await exportRuntime(empty, snapshot, definitions);
      expect(text).not.toContain('secret-000');
      const channels = effective(merged.config).channels.map(
        ([, options]) => options as { id: string; key: string },
      );
      expect(variables.length <= channels.length).toBe(true);
      for (const { id, key } of channels)
        process.env[`SLUICE_${`${id}_key`.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}`] = key;
      const file = join(folder, `exported-${(count += 1)}.ts`);
      writeFileSync(file, text);
      const loaded = await loadConfig(file);
      expect(effective(loaded)).toEqual(effective(merged.config));
    }),
    { numRuns: 25 },
  );
});

test('what is exported passes a check', async () => {
  const snapshot = snapshotOf([
    [{ kind: 'channel', name: 'eu', value: { type: 'demo', options: { models: ['eu-1'] } } }, false],
    [{ kind: 'alias', name: 'other', value: 'eu-1' }, false],
  ]);
  const { text } = await exportRuntime(empty, snapshot, new RuntimeDefinitions(empty));
  const file = join(folder, 'checked.ts');
  writeFileSync(file, text);
  expect(await problemsOfConfig(await loadConfig(file))).toEqual([]);
  expect(demo.spec.name).toBe('demo');
});

test('secrets whose names differ in signs alone have variables of their own, and what only looks like a reference is none', async () => {
  const openai = (name: string, key: string) =>
    [
      {
        kind: 'channel' as const,
        name,
        value: { type: 'openai', options: { key, models: ['m'], body: { set: { note: { env: 'HOME' } } } } },
      },
      false,
    ] as const;
  const snapshot = snapshotOf([
    openai('eu-1', 'sk-first-secret-0001'),
    openai('eu.1', 'sk-second-secret-0002'),
  ]);
  const { text, variables } = await exportRuntime(empty, snapshot, new RuntimeDefinitions(empty));
  expect(variables).toEqual(['SLUICE_EU_1_KEY', 'SLUICE_EU_1_KEY_2']);
  expect(text).not.toContain('env("HOME"');
  const file = join(folder, 'collisions.ts');
  writeFileSync(file, text);
  expect(effective(await loadConfig(file)).channels).toMatchObject([
    ['openai', { id: 'eu-1', body: { set: { note: { env: 'HOME' } } } }],
    ['openai', { id: 'eu.1', body: { set: { note: { env: 'HOME' } } } }],
  ]);
});

test('a price of any name and value is merged or refused', async () => {
  const snapshot = snapshotOf([[{ kind: 'price', name: '__proto__', value: 7 }, false]]);
  const { config } = await mergeRuntime(empty, snapshot, new RuntimeDefinitions(empty));
  expect(config.settings.prices).toEqual(empty.settings.prices);
});

test('a change of an entry counts its size once', () => {
  const value = 'x'.repeat(1_000);
  const before = snapshotOf([[{ kind: 'alias', name: 'a', value }, false]]);
  const [entry] = before.entries;
  if (entry === undefined) throw new Error('There is no entry.');
  const named = { kind: 'alias', name: 'a' } as const;
  const full = { ...before, bytes: 5_000 };
  const changed = nextSnapshot(full, {
    changes: [{ ...named, before: entry, after: { ...entry, value: 'y' } }],
  });
  expect(changed.bytes).toBe(5_000 - 1_002 + 3);
  expect(nextSnapshot(full, { changes: [{ ...named, before: entry }] }).bytes).toBe(5_000 - 1_002);
});

test('nothing is tried with stored secrets where nothing may be changed at run time', async () => {
  const file = readConfig({ runtimeConfig: { enabled: false } }, join(folder, 'gateway.config.ts'));
  const unused = (): never => {
    throw new Error('It was used.');
  };
  const config = new RuntimeConfig({
    file,
    store: new Proxy({}, { get: unused }) as never,
    processes: new Proxy({}, { get: unused }) as never,
    upkeep: new Upkeep(),
    log: createLog('silent'),
    tryConfig: unused,
  });
  await expect(config.withChannel('eu', { type: 'demo' }, () => undefined, unused)).rejects.toThrow(
    'does not allow changes at run time',
  );
});

test('what a start left out, a reload may leave out too, and nothing else', async () => {
  const unknown = (name: string) =>
    [{ kind: 'channel' as const, name, value: { type: 'no-such-kind', options: {} } }, false] as const;
  const buildOf = (ids: readonly string[], mayLeaveOut: 'all' | ReadonlySet<string>) => {
    const store = { read: async () => snapshotOf(ids.map(unknown)) } as unknown as RuntimeConfigStore;
    return buildWithRuntime(empty, store, async () => ({}) as never, mayLeaveOut);
  };
  const { leftOut, running } = await buildOf(['one'], 'all');
  expect(leftOut).toEqual(['channel:one']);
  expect(await buildOf(['one'], new Set(leftOut))).toMatchObject({ running, leftOut });
  await expect(buildOf(['one', 'two'], new Set(leftOut))).rejects.toThrow(
    'the run-time channel "two": there is no channel kind "no-such-kind".',
  );
});
