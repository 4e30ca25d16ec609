import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { traitsOption } from '../../core/config/traits-option.ts';
import { blockOf, commentsOf, type Comments } from './_comments.ts';
import { generatedBy, optionLine, pageOf } from './_page.ts';
import { optionRows } from './_schema.ts';

const source = readFileSync(join(import.meta.dirname, '../../core/model/traits.ts'), 'utf8');
const own = commentsOf(blockOf(source, 'export interface ModelTraits'));
/** Comments of traits that are objects. */
const parts: Readonly<Record<string, Comments>> = {
  images: commentsOf(blockOf(source, 'export interface ImageTraits')),
  schemaSubset: commentsOf(blockOf(source, 'export interface SchemaSubset')),
};

test('the reference has every trait of a model', async () => {
  const rows = optionRows(traitsOption, textOf).filter(
    // The traits of one format are those of all, and a range explains itself.
    ({ path, text }) => !path.startsWith('byFormat.') && (text !== '' || !path.includes('.')),
  );
  expect(rows.filter(({ text }) => text === '').map(({ path }) => path)).toEqual([]);
  const page = pageOf(
    '# Traits of models',
    generatedBy('test/reference/traits.test.ts', '[core/model/traits.ts](../../core/model/traits.ts)'),
    "Members of `traits` of a channel, by name or pattern of its models: `traits: { 'mine-thinker-*': { reasoning: 'effort' } }`. They state what a model can do where that differs from what Sluice knows. A trait that is absent means the ordinary behaviour of the format.",
    rows.map(optionLine).join('\n'),
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/traits.md');
});

function textOf(path: string): string | undefined {
  const [name = '', ...rest] = path.split('.');
  return rest.length === 0 ? own.get(name) : parts[name]?.get(rest.join('.'));
}
