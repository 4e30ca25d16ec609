import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/**
 * Assertions of llmprobe 0.6.12 that fail although nothing is wrong: it sends the text "[object FormData]" on Node 24, because the class is
 * not that of its own copy of undici; and it wants `cache_read_input_tokens` to be a part of `input_tokens`, which excludes them
 * (@anthropic-ai/sdk, `Usage.input_tokens`).
 */
const wrong = ['images-edit', 'messages-prompt-cache-prefix', 'messages-prompt-caching'];

/** Channels of one format each, and what they cannot do: there is no such setting in the provider's format. */
const kinds = {
  all: [],
  'chat-completions': [],
  // Log probabilities are dropped, and named in a header that llmprobe does not read.
  messages: ['chat-logprobs'],
  // Calls in parallel cannot be forbidden, and this model cannot be told not to think.
  'generate-content': [
    'chat-parallel-tools-off',
    'messages-parallel-tools-off',
    'responses-parallel-tools-off',
    'responses-reasoning-effort-none',
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
        demo({ id: format, speaks: [format], models: [format] }),
      ),
    ],
  });
  ({ value: key } = await gateway.apiKeys.create({ name: 'limited', requestsPerMinute: 100_000 }));
});
afterAll(() => gateway.close());

async function probe(model: string): Promise<Report> {
  const folder = temporaryFolder();
  const file = join(folder, 'report.json');
  const program = join(
    dirname(createRequire(import.meta.url).resolve('llmprobe/package.json')),
    'bin/dist/llmprobe.mjs',
  );
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
