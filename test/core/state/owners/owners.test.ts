import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { intersectPatterns, matchesModel } from '../../../../core/sdk/allowed-models.ts';
import { createApiKeys } from '../../../../core/state/api-keys/open.ts';
import type { ApiKeys } from '../../../../core/state/api-keys/index.ts';
import { OwnerMistake } from '../../../../core/state/owners/index.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { tries } from '../../../support/tries.ts';

/** The keys and owners of two processes on one database. */
async function twoProcesses(): Promise<readonly [ApiKeys, ApiKeys]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-owners-'));
  const opened = [0, 1].map(() => openStores(`sqlite:${join(folder, 'sluice.db')}`));
  const [one, other] = opened.map((stores) => createApiKeys(stores));
  onTestFinished(async () => {
    await one?.stop();
    await other?.stop();
    for (const stores of opened) await stores.close();
    rmSync(folder, { recursive: true, force: true });
  });
  if (one === undefined || other === undefined) throw new Error('There are no stores.');
  return [one, other];
}

const budget = (amount: number) => ({ unit: 'micro-dollar', period: 'day', amount }) as const;

describe('a key', () => {
  test('is bound by its member, its team and their organisation', async () => {
    const [keys] = await twoProcesses();
    const { owners } = keys;
    const acme = await owners.create({ kind: 'organisation', name: 'Acme', budgets: [budget(1_000)] });
    const team = await owners.create({
      kind: 'team',
      name: 'research',
      organisation: acme.id,
      models: ['gpt-*', 'claude-*'],
      requestsPerMinute: 5,
    });
    const ada = await owners.create({ kind: 'member', name: 'Ada', budgets: [budget(50)] });
    const { value } = await keys.create({
      name: 'k',
      team: team.id,
      member: ada.id,
      models: ['gpt-6', 'gemini-*'],
      budgets: [budget(10)],
    });
    const found = keys.find(value);
    expect(found?.state).toBe('valid');
    expect(found?.key.owners?.map(({ name }) => name)).toEqual(['Ada', 'research', 'Acme']);
    expect(found?.key.models).toEqual(['gpt-6']);
    expect(found?.key.budgets).toEqual([
      budget(10),
      { ...budget(50), owner: { id: ada.id, name: 'the member "Ada"' } },
      { ...budget(1_000), owner: { id: acme.id, name: 'the organisation "Acme"' } },
    ]);
    // The same object for each call, by which others remember what they have made of it, whatever happens to other owners.
    expect(keys.find(value)?.key).toBe(found?.key);
    await owners.create({ kind: 'team', name: 'another' });
    expect(keys.find(value)?.key).toBe(found?.key);
    await owners.update(ada.id, { note: 'moved' });
    expect(keys.find(value)?.key).not.toBe(found?.key);
    // What is kept of the key is its own alone.
    const [listed] = await keys.list();
    expect(listed).not.toHaveProperty('owners');
    expect(listed?.budgets).toEqual([budget(10)]);
  });

  test('does not work while an owner is switched off, nor once it is gone, in any process', async () => {
    const processes = await twoProcesses();
    const [keys, others] = processes;
    const team = await keys.owners.create({ kind: 'team', name: 'research' });
    const { value, record } = await keys.create({ name: 'k', team: team.id });
    await others.load();
    const states = async () => {
      for (const one of processes) await one.load();
      return Promise.all(processes.map(async (one) => (await one.lookUp(value))?.state));
    };
    expect(await states()).toEqual(['valid', 'valid']);
    const before = others.find(value)?.key;
    await keys.owners.update(team.id, { enabled: false });
    expect(await states()).toEqual(['disabled', 'disabled']);
    if (before !== undefined) expect(others.current(before)?.state).toBe('disabled');
    await others.owners.update(team.id, { enabled: true, budgets: [budget(7)] });
    expect(await states()).toEqual(['valid', 'valid']);
    // Also asked with what was found before the change, it has each budget once.
    if (before !== undefined) expect(others.current(before)?.key.budgets).toHaveLength(1);
    await others.owners.remove(team.id);
    expect(await states()).toEqual(['disabled', 'disabled']);
    await keys.update(record.id, { team: undefined });
    expect(await states()).toEqual(['valid', 'valid']);
  });

  test('belongs to nobody who does not exist, or is something else', async () => {
    const [keys] = await twoProcesses();
    const { owners } = keys;
    const [one, other] = [
      await owners.create({ kind: 'organisation', name: 'one' }),
      await owners.create({ kind: 'organisation', name: 'other' }),
    ];
    const team = await owners.create({ kind: 'team', name: 'team', organisation: one.id });
    const bot = await owners.create({ kind: 'service-account', name: 'bot', organisation: other.id });
    for (const [wrong, sentence] of [
      [{ team: 'team_none' }, 'There is no team team_none.'],
      [{ team: bot.id }, `There is no team ${bot.id}.`],
      [{ member: team.id }, `There is no member or service account ${team.id}.`],
      [{ team: team.id, member: bot.id }, 'must not belong to different organisations'],
    ] as const) {
      const made = keys.create({ name: 'k', ...wrong });
      await expect(made).rejects.toThrow(sentence);
      await expect(made).rejects.toBeInstanceOf(OwnerMistake);
    }
    expect(await keys.list()).toEqual([]);
    await expect(owners.create({ kind: 'organisation', name: 'x', organisation: one.id })).rejects.toThrow(
      'An organisation cannot belong to another.',
    );
    await expect(owners.remove(one.id)).rejects.toThrow('"team" belongs to "one".');
    await expect(owners.update('team_none', { name: 'x' })).rejects.toThrow('There is no owner team_none.');
    await expect(owners.update(team.id, { name: '' })).rejects.toThrow('name: must not be empty');
  });
});

describe('the models that two lists allow', () => {
  const name = fc.stringMatching(/^[ab-]{0,6}$/);
  const pattern = fc.oneof(
    name,
    fc.array(name, { minLength: 2, maxLength: 3 }).map((parts) => parts.join('*')),
  );
  const list = fc.array(
    pattern.filter((text) => text !== ''),
    { minLength: 1, maxLength: 5 },
  );

  test('are allowed by both, whatever the patterns', () => {
    expect.hasAssertions();
    fc.assert(
      fc.property(list, list, name, (one, other, model) => {
        const isAllowed = matchesModel(intersectPatterns(one, other), model);
        expect(isAllowed && !(matchesModel(one, model) && matchesModel(other, model))).toBe(false);
      }),
      { numRuns: tries(2_000) },
    );
  });

  test('are all that both allow where one of them names its models', () => {
    fc.assert(
      fc.property(list, fc.array(name, { minLength: 1 }), name, (one, other, model) => {
        expect(matchesModel(intersectPatterns(one, other), model)).toBe(
          matchesModel(one, model) && matchesModel(other, model),
        );
      }),
      { numRuns: tries(2_000) },
    );
  });

  test('are a bounded number, however many patterns there are', () => {
    const numbers = Array.from({ length: 200 }, (_, index) => String(index));
    const [starts, ends] = [numbers.map((one) => `a${one}-*`), numbers.map((one) => `*-b${one}`)];
    const both = intersectPatterns(starts, ends);
    expect(both).toHaveLength(1_000);
    expect(intersectPatterns(both, ends).length).toBeLessThanOrEqual(1_000);
  });

  test('include those between two patterns', () => {
    expect(intersectPatterns(['gpt-*'], ['*-mini'])).toEqual(['gpt-*-mini']);
    expect(intersectPatterns(['gpt-*'], ['gpt-6*', 'claude-*'])).toEqual(['gpt-6*']);
    expect(intersectPatterns(['gpt-*'], ['claude-*'])).toEqual([]);
  });
});
