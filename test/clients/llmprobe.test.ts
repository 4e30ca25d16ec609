import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/**
 * Assertions of llmprobe 0.6.12 that fail although nothing is wrong: it wants `cache_read_input_tokens` to be a part of `input_tokens`, which
 * excludes them (@anthropic-ai/sdk, `Usage.input_tokens`).
 */
const wrong = ['messages-prompt-cache-prefix', 'messages-prompt-caching'];

/** Channels of one format each, and what they cannot do: there is no such setting in the provider's format. */
const kinds = {
  all: [],
  'chat-completions': [],
  // Log probabilities are dropped, and named in a header that llmprobe does not read.
  messages: ['chat-logprobs'],
  // Calls in parallel cannot be forbidden.
  'generate-content': [
    'chat-parallel-tools-off',
    'messages-parallel-tools-off',
    'responses-parallel-tools-off',
  ],
} as const;

interface Report {
  readonly conformance: {
    readonly passed: number;
    readonly results: readonly { readonly id: string; readonly outcome: string }[];
  };
  readonly coverage: { readonly byTier: readonly { readonly missing: readonly string[] }[] };
}

let gateway: TestGateway;
let key: string;
beforeAll(async () => {
  gateway = await startGateway({
    channels: [
      demo({ id: 'all', models: ['all'] }),
      ...(['chat-completions', 'messages', 'generate-content'] as const).map((format) =>
        demo({
          id: format,
          speaks: [format],
          models: [format],
          // As a model of Gemini that has budgets, of which 0 switches thinking off.
          ...(format === 'generate-content' ? { traits: { '*': { reasoning: 'budget' } } } : {}),
        }),
      ),
    ],
  });
  ({ value: key } = await gateway.apiKeys.create({ name: 'limited', requestsPerMinute: 100_000 }));
});
afterAll(() => gateway.close());

/**
 * The program with one fault mended: it makes forms of Node's own class and sends them with its own copy of undici, which does not know that
 * class and sends the text "[object FormData]".
 */
async function mended(): Promise<string> {
  const folder = dirname(createRequire(import.meta.url).resolve('llmprobe/package.json'));
  const source = await readFile(join(folder, 'bin/dist/llmprobe.mjs'), 'utf8');
  return source
    .replaceAll('new FormData()', 'new import_undici.FormData()')
    .replaceAll('instanceof FormData;', 'instanceof import_undici.FormData;');
}

async function probe(model: string): Promise<Report> {
  const folder = temporaryFolder();
  const file = join(folder, 'report.json');
  const program = join(folder, 'llmprobe.mjs');
  await writeFile(program, await mended());
  const options = ['--full', '--no-bench', '--no-save', '--no-color', '--save', file];
  // It exits with 1 where an assertion fails; the report says which.
  await new Promise((resolve) =>
    execFile(
      process.execPath,
      [program, gateway.url, '-k', key, '-m', model, ...options],
      { env: { ...process.env, HOME: folder }, maxBuffer: 2 ** 26 },
      resolve,
    ),
  );
  return JSON.parse(await readFile(file, 'utf8')) as Report;
}

describe.each(Object.entries(kinds))('llmprobe over a channel of %s', (model, cannot) => {
  test('finds no fault but those that are known', { timeout: 240_000 }, async () => {
    const { conformance, coverage } = await probe(model);
    const failed = conformance.results.filter(({ outcome }) => outcome === 'fail').map(({ id }) => id);
    expect(failed.toSorted()).toEqual([...wrong, ...cannot].toSorted());
    expect(conformance.passed).toBeGreaterThan(280);
    // It cannot try tools of MCP servers yet.
    const [core, , frontier] = coverage.byTier;
    expect([core?.missing, frontier?.missing]).toEqual([[], ['MCP tools']]);
  });
});
