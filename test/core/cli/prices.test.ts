import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../core/config/config.ts';
import { importPriceList } from '../../../core/money/prices/import-list.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice } from './_process.ts';
import { shell } from './_shell.ts';

const sluiceInShell = shell();

/** Entries as the list has them. */
const list = {
  sample_spec: { input_cost_per_token: 0, mode: 'one of: chat, embedding' },
  'big-4': {
    input_cost_per_token: 3e-6,
    output_cost_per_token: 0.000_015,
    cache_read_input_token_cost: 3e-7,
    cache_creation_input_token_cost: 3.75e-6,
    cache_creation_input_token_cost_above_1hr: 6e-6,
    input_cost_per_token_above_200k_tokens: 6e-6,
    output_cost_per_token_above_200k_tokens: 2.25e-5,
    cache_creation_input_token_cost_above_1hr_above_200k_tokens: 1.2e-5,
    input_cost_per_token_batches: 1.5e-6,
    search_context_cost_per_query: { search_context_size_low: 0.01 },
    litellm_provider: 'maker',
    max_input_tokens: 200_000,
    mode: 'chat',
  },
  'host/thinker': {
    input_cost_per_token: 5.5e-7,
    output_cost_per_token: 2.19e-6,
    output_cost_per_reasoning_token: 3e-6,
    input_cost_per_image: null,
    litellm_provider: 'host',
    mode: 'chat',
  },
  'host/ranged': {
    litellm_provider: 'host',
    mode: 'chat',
    tiered_pricing: [
      { range: [0, 32_000], input_cost_per_token: 5e-8, output_cost_per_token: 4e-7 },
      { range: [32_000, 128_000], input_cost_per_token: 1e-7, output_cost_per_token: 8e-7 },
    ],
  },
  embedder: { input_cost_per_token: 2e-8, mode: 'embedding', litellm_provider: 'maker' },
  painter: {
    output_cost_per_image: 0.04,
    input_cost_per_image: 0.02,
    input_cost_per_token: 0,
    output_cost_per_token: 0,
    mode: 'image_generation',
    litellm_provider: 'maker',
  },
  listener: { input_cost_per_second: 0.0001, output_cost_per_second: 0, mode: 'audio_transcription' },
  speaker: { input_cost_per_character: 1.5e-5, mode: 'audio_speech' },
  ranker: { input_cost_per_query: 0.002, input_cost_per_token: 0, output_cost_per_token: 0, mode: 'rerank' },
  half: { input_cost_per_token: 1e-6, mode: 'chat', litellm_provider: 'maker' },
  pixels: { input_cost_per_pixel: 1.9e-8, mode: 'image_generation' },
  broken: 7,
  wild: { input_cost_per_token: -1, output_cost_per_token: 1 },
};

describe('a price list', () => {
  const imported = importPriceList(list);

  test('is read in all its dimensions, in dollars per million tokens without dust', () => {
    expect(imported.rows).toEqual({
      'big-4': {
        input: 3,
        output: 15,
        cacheRead: 0.3,
        cacheWrite: 3.75,
        cacheWriteLong: 6,
        tiers: [{ above: 200_000, input: 6, output: 22.5, cacheWriteLong: 12 }],
      },
      'host/thinker': { input: 0.55, output: 2.19, reasoning: 3 },
      'host/ranged': { input: 0.05, output: 0.4, tiers: [{ above: 32_000, input: 0.1, output: 0.8 }] },
      embedder: { input: 0.02, output: 0 },
      painter: { perImage: 0.04 },
      listener: { perSecond: 0.0001 },
      speaker: { perCharacter: 0.000_015 },
      ranker: { perCall: 0.002 },
    });
  });

  test('says what was left out of it, and why', () => {
    expect(imported.leftOut).toEqual([
      '"half": output is missing beside "input": set 0 if there is no output, or it is free',
      '"pixels" has no price that is supported',
      '"broken" is not an object',
      '"wild": input must be 0 or more dollars per million tokens',
    ]);
    expect(Object.fromEntries(imported.unknown)).toEqual({
      input_cost_per_token_batches: 1,
      search_context_cost_per_query: 1,
    });
  });

  test('is a table that the config takes', () => {
    const { settings } = readConfig({ prices: imported.rows }, '/x/gateway.config.ts');
    expect(Object.keys(settings.prices)).toHaveLength(8);
  });

  test('is narrowed by provider, whose name goes, and by model', () => {
    expect(Object.keys(importPriceList(list, { providers: ['host'] }).rows)).toEqual(['thinker', 'ranged']);
    const wants = (model: string): boolean => model.startsWith('b');
    expect(Object.keys(importPriceList(list, { wants }).rows)).toEqual(['big-4']);
    const twice = { 'host/x': list['host/thinker'], x: list['host/thinker'] };
    const { rows, leftOut } = importPriceList(twice, { providers: ['host'] });
    expect([Object.keys(rows), leftOut]).toEqual([['x'], ['"x" is a second entry for "x"']]);
  });

  test.each([
    [
      'tokens of sound at a model of texts are told apart from those it has',
      {
        entry: {
          mode: 'chat',
          input_cost_per_token: 1e-6,
          output_cost_per_token: 2e-6,
          input_cost_per_audio_token: 9e-6,
        },
        row: { input: 1, output: 2, inputAudio: 9 },
        unknown: [],
      },
    ],
    [
      'of tokens of several kinds the dearest counts where it is not told which they are',
      {
        entry: {
          mode: 'chat',
          input_cost_per_token: 1e-6,
          output_cost_per_token: 2e-6,
          input_cost_per_audio_token: 9e-6,
          input_cost_per_image_token: 5e-6,
          output_cost_per_audio_token: 1e-6,
          cache_read_input_audio_token_cost: 3e-6,
        },
        row: { input: 9, inputText: 1, inputImage: 5, output: 2, outputAudio: 1, cacheRead: 3 },
        unknown: [],
      },
    ],
    [
      'an image that is charged by its tokens is not charged as an image too',
      {
        entry: {
          mode: 'image_generation',
          input_cost_per_token: 1e-6,
          output_cost_per_image_token: 4e-6,
          output_cost_per_image: 0.04,
          input_cost_per_second: 0.1,
        },
        row: { input: 1, output: 4, perSecond: 0.1 },
        unknown: [],
      },
    ],
    [
      'sound that is charged by its tokens is not charged by the second too',
      {
        entry: {
          mode: 'audio_transcription',
          input_cost_per_audio_token: 6e-6,
          output_cost_per_token: 1e-5,
          input_cost_per_second: 0.0001,
          output_cost_per_image: 0.5,
        },
        row: { input: 6, output: 10, perImage: 0.5 },
        unknown: [],
      },
    ],
    [
      'what is free by its tokens is charged by its images',
      {
        entry: {
          mode: 'image_edit',
          input_cost_per_token: 0,
          output_cost_per_token: 0,
          input_cost_per_image: 0.01,
          output_cost_per_image: 0.02,
        },
        row: { perImage: 0.02 },
        unknown: [],
      },
    ],
    [
      'what is free altogether has the price nothing',
      {
        entry: { mode: 'chat', input_cost_per_token: 0, output_cost_per_token: 0, input_cost_per_image: 0 },
        row: { input: 0, output: 0, perImage: 0 },
        unknown: [],
      },
    ],
    [
      'ranges that are no ranges are passed over',
      {
        entry: {
          mode: 'chat',
          input_cost_per_token: 1e-6,
          output_cost_per_token: 2e-6,
          tiered_pricing: [
            'x',
            { range: 'x' },
            { range: ['x'], input_cost_per_token: 1 },
            { range: [1000], input_cost_per_token: 3e-6, note: 'x' },
          ],
        },
        row: { input: 1, output: 2, tiers: [{ above: 1000, input: 3 }] },
        unknown: [],
      },
    ],
    [
      'a price that is a text is told of, and one that is null is none',
      {
        entry: {
          mode: 'chat',
          input_cost_per_token: 1e-6,
          output_cost_per_token: 2e-6,
          a_cost: 'x',
          b_cost: null,
          tiered_pricing: 'x',
        },
        row: { input: 1, output: 2 },
        unknown: ['a_cost'],
      },
    ],
  ])('%s', (_what, { entry, row, unknown }) => {
    const read = importPriceList({ m: entry });
    expect(read.rows).toEqual({ m: row });
    expect([...read.unknown.keys()]).toEqual(unknown);
  });

  test.each([
    ['openai', 'openai/gpt', 'gpt'],
    ['vertex_ai-chat-models', 'vertex_ai/gemini', 'gemini'],
    ['a-b', 'a-b/m', 'm'],
    ['openai', 'azure/gpt', 'azure/gpt'],
    ['openai', 'openai-gpt', 'openai-gpt'],
  ])('names the models of %s without it: %s', (provider, name, model) => {
    const entry = { litellm_provider: provider, input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 };
    expect(Object.keys(importPriceList({ [name]: entry }, { providers: [provider] }).rows)).toEqual([model]);
    expect(Object.keys(importPriceList({ [name]: entry }, { providers: ['other'] }).rows)).toEqual([]);
  });

  test('may have an entry that only explains it, and entries of nobody', () => {
    const entry = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 };
    expect(Object.keys(importPriceList({ sample_spec: entry, m: entry }).rows)).toEqual(['m']);
    expect(Object.keys(importPriceList({ m: entry }, { providers: [''] }).rows)).toEqual(['m']);
  });

  test.each([null, [], 'x', 3])('that is %j is refused', (value) => {
    expect(() => importPriceList(value)).toThrow('not a JSON object of models');
  });
});

const config = `
  import { defineConfig } from 'sluice';
  import demo from '../../../channels/demo/index.ts';
  import imported from './prices.ts';
  export default defineConfig({ prices: { ...imported, 'own-*': { input: 1, output: 2 } }, channels: [demo()] });`;

describe('sluice prices', () => {
  test('imports a list into a file that the config imports, and shows a price of it', async () => {
    const folder = operatorFolder({ 'list.json': JSON.stringify(list), 'gateway.config.ts': config });
    const out = join(folder, 'prices.ts');
    const imported = await sluice(['prices', 'import', join(folder, 'list.json'), '--out', out]);
    expect(imported).toMatchObject({ code: 0, stdout: '' });
    expect(imported.stderr).toContain('Imported 8 models.\nSkipped 4 entries:\n');
    expect(imported.stderr).toContain('  input_cost_per_token_batches (1)\n');

    const show = (model: string, run: (args: readonly string[]) => Promise<unknown> = sluiceInShell) =>
      run(['prices', 'show', model, '--config', join(folder, 'gateway.config.ts')]);
    expect(await show('big-4', sluice)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^input +\$3 +per million tokens\n[^]*above 200000 input tokens:\n {2}input +\$6 /,
      ),
    });
    expect(await show('own-model')).toMatchObject({
      stdout: expect.stringMatching(/^by the pattern own-\*\ninput +\$1 /) as string,
    });
    expect(await show('nobody')).toMatchObject({ code: 1, stderr: expect.stringContaining('has no price') });
    expect(await show('demo')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^at the channel demo, as "\*", channel kind demo\ninput +\$0\.1 /,
      ) as string,
    });
  });

  test('writes to standard output, or JSON, and replaces a file only when it is told to', async () => {
    const folder = operatorFolder({ 'list.json': JSON.stringify(list), 'old.json': '{}' });
    const imports = (...args: string[]) =>
      sluiceInShell(['prices', 'import', join(folder, 'list.json'), ...args]);
    const { stdout } = await imports('--provider', 'host', '--models', 'think*,none');
    expect(stdout).toMatch(/\nexport default \{\n {2}"thinker": \{/);
    expect(stdout).not.toContain('ranged');

    const out = join(folder, 'old.json');
    expect(await imports('--out', out)).toMatchObject({
      code: 1,
      stderr: `${out} exists already. To replace it add --force.\n`,
    });
    expect(await imports('--out', out, '--force')).toMatchObject({ code: 0 });
    expect(JSON.parse(readFileSync(out, 'utf8'))).toMatchObject({ embedder: { input: 0.02 } });
  });

  test('says what is wrong with how it was called, or with the file', async () => {
    const folder = operatorFolder({ 'bad.json': '{', 'list.json': '[]', 'empty.json': '{}' });
    const at = (name: string): string => join(folder, name);
    const outcome = async (...args: string[]): Promise<unknown[]> => {
      const { code, stderr } = await sluiceInShell(['prices', ...args]);
      return [code, stderr.split('\n')[0]];
    };
    expect(await outcome()).toEqual([2, 'Name a subcommand: import or show.']);
    expect(await outcome('export')).toEqual([2, 'Unknown subcommand "export". Use import or show.']);
    expect(await outcome('import')).toEqual([2, 'Name one file: sluice prices import FILE.']);
    expect(await outcome('show', 'a', 'b')).toEqual([2, 'Name one model: sluice prices show MODEL.']);
    expect((await outcome('import', at('bad.json')))[1]).toMatch(/bad\.json is not valid JSON: /);
    expect((await outcome('import', at('none.json')))[1]).toMatch(/Cannot read .*none\.json: /);
    expect(await outcome('import', at('list.json'))).toEqual([
      1,
      'The price list is not a JSON object of models.',
    ]);
    expect(await outcome('import', at('empty.json'))).toEqual([
      1,
      'No entry was imported, and no file was written. Check the list, --provider and --models.',
    ]);
  });
});
