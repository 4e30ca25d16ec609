import { expect, test } from 'vitest';
import { findChannelKinds } from '../../../core/config/definitions.ts';
import { home } from '../../../core/config/installation/home.ts';
import { shippedModels } from '../../../core/models/catalogue.ts';
import { contradictionsOf, idleCorrections } from '../../../core/models/contradictions.ts';
import { shippedCorrections } from '../../../core/models/corrections.ts';
import { traitsOfKinds } from '../../../core/models/kind-traits.ts';

const kinds = traitsOfKinds(await findChannelKinds(home, []));

test('no channel kind contradicts the catalogue without a dated and sourced correction: see `sluice models check`', () => {
  expect(kinds.length).toBeGreaterThan(50);
  expect(contradictionsOf(kinds).filter(({ correction }) => correction === undefined)).toEqual([]);
});

test('every correction is for a model of the catalogue, and says when and where it was read', () => {
  expect(idleCorrections(kinds)).toEqual([]);
  for (const { date, source, models } of shippedCorrections()) {
    expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(source.length).toBeGreaterThan(10);
    expect(models.length).toBeGreaterThan(0);
  }
});

test('a kind that states something else than the catalogue is found', () => {
  const list = {
    ...shippedModels(),
    models: {
      one: {
        m: { inputLimit: 900, can: ['reasoning', 'structured-output'], traits: { efforts: ['low'] } },
        n: { inputLimit: 500, cannot: ['reasoning'] },
      },
    },
  } as const;
  const kind = {
    kind: 'mine',
    catalogue: ['one'],
    formats: ['chat-completions'],
    traits: (model: string) =>
      model === 'm'
        ? ({ inputLimit: 500, reasoning: 'none', jsonSchema: false } as const)
        : ({ inputLimit: 400, reasoning: 'effort' } as const),
  };
  expect(contradictionsOf([kind], list)).toEqual([
    { kind: 'mine', model: 'm', trait: 'inputLimit', code: 500, catalogue: 900 },
    { kind: 'mine', model: 'm', trait: 'reasoning', code: false, catalogue: true },
    { kind: 'mine', model: 'm', trait: 'jsonSchema', code: false, catalogue: true },
    { kind: 'mine', model: 'n', trait: 'reasoning', code: true, catalogue: false },
  ]);
  expect(
    contradictionsOf([{ ...kind, thinking: { reasoning: 'effort' } }], list).map(({ trait }) => trait),
  ).toEqual(['inputLimit', 'jsonSchema', 'reasoning']);
});

test('a limit that a kind takes for models it does not know contradicts no row of the catalogue', () => {
  const list = {
    ...shippedModels(),
    models: { one: { m: { inputLimit: 900, outputLimit: 90 }, n: { inputLimit: 900, outputLimit: 90 } } },
  } as const;
  const kind = {
    kind: 'mine',
    catalogue: ['one'],
    formats: ['chat-completions'],
    traits: (model: string) => ({ inputLimit: 500, outputLimit: model === 'n' ? 60 : 50 }),
  };
  expect(contradictionsOf([kind], list)).toEqual([
    { kind: 'mine', model: 'n', trait: 'outputLimit', code: 60, catalogue: 90 },
  ]);
});
