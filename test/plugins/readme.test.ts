import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startGatewayIn, type GatewayProcess } from '../core/cli/_process.ts';
import { frugalCompiler } from '../support/compiler.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { startUpstream } from '../support/upstream.ts';

const home = fileURLToPath(new URL('../../', import.meta.url));

/** The files that a page shows: code whose first line names its path. */
function filesOn(page: string): Record<string, string> {
  const text = readFileSync(join(home, page), 'utf8');
  return Object.fromEntries(
    [...text.matchAll(/^```ts\n(\/\/ (\S+\.ts)\n[\s\S]*?)^```$/gm)].map(([, code = '', path = '']) => [
      path,
      code,
    ]),
  );
}

/** An operator's folder with the files of a page as they stand there, and a config. */
function folderWith(page: string, config: string): string {
  return operatorFolder({ ...filesOn(page), 'gateway.config.ts': config });
}

/** Returns the number of passed tests of a folder with Node's test runner in one process. Rejects when one fails. */
async function runTestsIn(folder: string): Promise<number> {
  const args = ['--conditions=sluice-source', '--test', '--test-isolation=none', '--test-reporter=tap'];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: folder,
    // Set by the runner of this test, which is another one.
    env: { ...process.env, NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined },
  });
  return Number(/^# pass (\d+)$/m.exec(stdout)?.[1]);
}

/** Returns the type errors in these folders. */
async function typeErrors(folders: readonly string[]): Promise<string> {
  const project = operatorFolder({
    'tsconfig.json': JSON.stringify({
      extends: join(home, 'tsconfig.json'),
      include: folders.map((folder) => `${folder}/**/*`),
    }),
  });
  const compiler = join(home, 'node_modules/typescript/bin/tsc');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [compiler, '--noEmit', '-p', project, ...frugalCompiler.options],
    { env: { ...process.env, ...frugalCompiler.env } },
  ).catch((error: { stdout: string }) => error);
  return stdout;
}

async function chat(
  { url, key }: Pick<GatewayProcess, 'url' | 'key'>,
  content: string,
  more: object = {},
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }], ...more }),
  });
}

async function answerOf(response: Response): Promise<string | undefined> {
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]?.message.content;
}

/** The texts of a stream, put together. */
async function streamedBy(response: Response): Promise<string> {
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  const chunks = lines.map(
    (line) => JSON.parse(line.slice(6)) as { choices: { delta: { content?: string | null } }[] },
  );
  return chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
}

const demo = `import demo from '../../../channels/demo/index.ts';`;

/** Configs with the plugins of the page. */
const pluginConfigs = {
  silent: `import { defineConfig } from 'sluice'; ${demo} export default defineConfig({ channels: [demo()] });`,
  masking: `import { defineConfig } from 'sluice';
    ${demo}
    import promptLimit from './plugins/prompt-limit.ts';
    import redact from './plugins/redact.ts';
    export default defineConfig({
      plugins: [redact({ words: ['moonshine', 'a.b'] }), promptLimit({ tokens: 100 })],
      channels: [demo()],
    });`,
  closed: `import { defineConfig } from 'sluice';
    import maintenance from './plugins/maintenance.ts';
    export default defineConfig({ plugins: [maintenance({ message: 'Back at noon.' })] });`,
};

/** The channels of the page, and a config with all of them, whose providers are at this address. */
const channelNames = Object.keys(filesOn('channels/README.md'))
  .filter((path) => path.startsWith('channels/'))
  .map((path) => path.replace(/^channels\/(.*)\.ts$/, '$1'));
const channelConfig = (url: string): string =>
  `import { defineConfig } from 'sluice';
   ${channelNames.map((name) => `import ${name} from './channels/${name}.ts';`).join('\n')}
   export default defineConfig({
     channels: [${channelNames.map((name) => `${name}({ key: 'the-key-of-${name}', baseUrl: '${url}/${name}', models: ['from-${name}'] })`).join(', ')}],
   });`;

test('an editor marks nothing red in what the pages show, nor in configs with it', async () => {
  const folders = [
    ...Object.values(pluginConfigs).map((config) => folderWith('plugins/README.md', config)),
    folderWith('channels/README.md', channelConfig('http://127.0.0.1:9')),
  ];
  expect(await typeErrors(folders)).toBe('');
});

describe('the plugins on the page', () => {
  test('are what the page says they are', () => {
    const names = Object.keys(filesOn('plugins/README.md'));
    expect(names.filter((path) => path.startsWith('plugins/'))).toEqual([
      'plugins/redact.ts',
      'plugins/prompt-limit.ts',
      'plugins/maintenance.ts',
      'plugins/cache.ts',
      'plugins/secrets-keeper.ts',
      'plugins/content-check.ts',
      'plugins/router.ts',
      'plugins/cost-log.ts',
    ]);
  });

  test('keep what their tests on the page say', async () => {
    const passed = await runTestsIn(folderWith('plugins/README.md', 'export default {};'));
    expect(passed).toBe(8);
  });

  test('run by being in the folder, and change nothing until they are told to', async () => {
    const folder = folderWith('plugins/README.md', pluginConfigs.silent);
    const gateway = await startGatewayIn(folder);
    expect(gateway.stdout()).toMatch(/admit +rate-limit, .*prompt-limit\n +shape .*redact/);
    expect(gateway.stdout()).not.toContain('maintenance');
    expect(await answerOf(await chat(gateway, 'moonshine and more'))).toBe('You said: moonshine and more');
  });

  test('mask, refuse and answer when the config says so', async () => {
    const folder = folderWith('plugins/README.md', pluginConfigs.masking);
    const gateway = await startGatewayIn(folder);
    const text = 'Moonshine, not acb, a.b or moon shine 🙂moonshine🙂';
    const masked = 'You said: *********, not acb, *** or moon shine 🙂*********🙂';
    expect(await answerOf(await chat(gateway, text))).toBe(masked);
    expect(await streamedBy(await chat(gateway, text, { stream: true }))).toBe(masked);
    const refused = await chat(gateway, 'long '.repeat(200));
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: { code: 'context_length_exceeded', message: expect.stringMatching(/at most 100/) },
    });
    await gateway.wrote(/"plugin":"prompt-limit".*"keyId":"key_/);
  });

  test('answer without any provider, in every format, streamed and whole', async () => {
    const folder = folderWith('plugins/README.md', pluginConfigs.closed);
    const gateway = await startGatewayIn(folder);
    expect(await answerOf(await chat(gateway, 'hello'))).toBe('Back at noon.');
    expect(await streamedBy(await chat(gateway, 'hello', { stream: true }))).toBe('Back at noon.');
    const messages = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'x-api-key': gateway.key,
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ model: 'x', max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }),
    });
    expect(await messages.json()).toMatchObject({
      model: 'x',
      content: [{ type: 'text', text: 'Back at noon.' }],
      stop_reason: 'end_turn',
    });
    const generate = await fetch(`${gateway.url}/v1beta/models/x:generateContent?key=${gateway.key}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hello' }] }] }),
    });
    expect(await generate.json()).toMatchObject({
      candidates: [{ content: { parts: [{ text: 'Back at noon.' }] }, finishReason: 'STOP' }],
    });
  });
});

describe('the channels on the page', () => {
  test('keep what their tests on the page say', async () => {
    const passed = await runTestsIn(folderWith('channels/README.md', 'export default {};'));
    expect(passed).toBeGreaterThan(20);
  });

  test('reach their provider', async () => {
    const upstream = await startUpstream(({ url }, response) => {
      response.setHeader('content-type', 'application/json');
      if (url.startsWith('/lines/')) {
        response.end(
          '{"text":"Hello from "}\n{"text":"there."}\n{"done":true,"input_tokens":1,"output_tokens":1}\n',
        );
        return;
      }
      if (url.startsWith('/vectors/')) {
        response.end('{"vectors":[[0.5,-1]],"usage":{"input_tokens":3}}');
        return;
      }
      response.end(
        JSON.stringify({
          id: 'chatcmpl-1',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [
            { index: 0, message: { role: 'assistant', content: 'Hello from there.' }, finish_reason: 'stop' },
          ],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        }),
      );
    });
    onTestFinished(() => upstream.close());
    expect(channelNames.length).toBeGreaterThan(0);
    const folder = folderWith('channels/README.md', channelConfig(upstream.url));
    const gateway = await startGatewayIn(folder);
    for (const name of channelNames.filter((one) => one !== 'vectors')) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await answerOf(await chat(gateway, 'hello', { model: `from-${name}` }))).toBe(
        'Hello from there.',
      );
      const seen = upstream.requests.at(-1);
      expect(seen?.url).toMatch(
        name === 'lines' ? /^\/lines\/generate$/ : new RegExp(`^/${name}/.*chat/completions$`),
      );
      expect(JSON.stringify(seen?.headers)).not.toContain(gateway.key);
      expect(JSON.parse(seen?.body.toString() ?? '')).toMatchObject({
        model: `from-${name}`,
        messages: [{ content: 'hello' }],
      });
    }
    const embedded = await fetch(`${gateway.url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'from-vectors', input: 'hello', dimensions: 2, user: 'ada' }),
    });
    expect(await embedded.json()).toMatchObject({
      data: [{ embedding: [0.5, -1], index: 0 }],
      model: 'from-vectors',
      usage: { prompt_tokens: 3 },
    });
    expect(embedded.headers.get('x-sluice-loss')).toContain('user');
    const seen = upstream.requests.at(-1);
    expect(seen?.url).toBe('/vectors/embed');
    expect(seen?.headers.authorization).toBe('Bearer the-key-of-vectors');
    expect(JSON.parse(seen?.body.toString() ?? '')).toEqual({
      model: 'from-vectors',
      texts: ['hello'],
      size: 2,
    });
  });
});
