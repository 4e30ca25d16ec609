import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { start, type Running } from '../core/cli/_process.ts';
import { frugalCompiler } from '../support/compiler.ts';
import { eventually } from '../support/eventually.ts';
import { everything } from '../support/tries.ts';
import { startUpstream } from '../support/upstream.ts';

/*
 * The package as a stranger gets it: packed, installed outside the repository, and started there. Nothing is asked of the internet, but
 * for what `npm run fuzz` lets npm install.
 */

const home = fileURLToPath(new URL('../..', import.meta.url));
const exec = promisify(execFile);
const key = 'sk-a-key-for-tests-of-the-package';

/** The Node of the tests comes first, so that npm and the scripts that it runs use it. */
const environment = {
  PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
  HOME: process.env['HOME'] ?? '',
  SLUICE_PORT: '0',
  SLUICE_BOOTSTRAP_KEY: key,
  SLUICE_LOG: 'info',
  ...frugalCompiler.env,
};

async function run(cwd: string, program: string, ...args: string[]): Promise<string> {
  const { stdout } = await exec(program, args, { cwd, env: environment, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** Outside the repository, whose packages no program in it may find. */
let installFolder: string;
let packed: readonly string[] = [];
let size = 0;

beforeAll(async () => {
  installFolder = mkdtempSync(join(tmpdir(), 'sluice-package-'));
  await run(home, process.execPath, 'core/packaging/prepack.js', '--page-as-it-is', '--unchecked');
  const report = await run(
    home,
    'npm',
    'pack',
    '--ignore-scripts',
    '--json',
    '--pack-destination',
    installFolder,
  );
  const packReport = JSON.parse(report) as readonly Packed[] | Readonly<Record<string, Packed>>;
  const [tarball] = Object.values(packReport);
  packed = tarball?.files.map(({ path }) => path) ?? [];
  size = tarball?.size ?? 0;
  writeFileSync(join(installFolder, 'package.json'), '{ "private": true }');
  await install(join(installFolder, tarball?.filename ?? ''));
});

afterAll(() => rmSync(installFolder, { recursive: true, force: true }));

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

/**
 * Installs the package as pnpm does, where each package finds only those that its own package.json names: without the internet by links to
 * packages of the repository, with `npm run fuzz` by npm's linked layout.
 */
async function install(tarball: string): Promise<void> {
  if (everything) return installByNpm(installFolder, tarball);
  const store = join(installFolder, 'node_modules/.store/node_modules');
  mkdirSync(store, { recursive: true });
  await run(installFolder, 'tar', '-xzf', tarball);
  renameSync(join(installFolder, 'package'), join(store, 'sluice'));
  const { dependencies } = readManifest(join(store, 'sluice'));
  for (const name of Object.keys(dependencies)) link(join(home, 'node_modules', name), join(store, name));
  link(join(store, 'sluice'), join(installFolder, 'node_modules/sluice'));
  link(join(store, 'sluice/core/cli/sluice.js'), join(installFolder, 'node_modules/.bin/sluice'));
}

/** Installs what the package.json of a folder made by `sluice init` names. */
async function installProject(folder: string): Promise<void> {
  if (everything) return installByNpm(folder);
  const { dependencies, devDependencies } = readManifest(folder);
  for (const name of Object.keys({ ...dependencies, ...devDependencies }))
    link(
      join(name === 'sluice' ? installFolder : home, 'node_modules', name),
      join(folder, 'node_modules', name),
    );
}

async function installByNpm(folder: string, ...more: readonly string[]): Promise<void> {
  await run(
    folder,
    'npm',
    'install',
    '--install-strategy=linked',
    '--prefer-offline',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    ...more,
  );
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

/** Writes files below the place, and says which folder they are in. */
function write(folder: string, files: Readonly<Record<string, string>>): string {
  for (const [path, text] of Object.entries(files)) {
    const file = join(installFolder, folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return join(installFolder, folder);
}

/** A plugin of somebody else's, as a package that has brought a copy of Sluice. */
const thirdParty = {
  'node_modules/sluice-plugin-pii/package.json': `{ "name": "sluice-plugin-pii", "version": "1.0.0", "type": "module", "exports": "./index.js" }`,
  'node_modules/sluice-plugin-pii/index.js': `
    import { caller, definePlugin, GatewayError } from 'sluice';
    export default definePlugin({
      name: 'pii',
      stage: 'admit',
      setup: () => async function pii(call, next) {
        if (call.wire.bytes.includes('secret')) throw new GatewayError('forbidden', 'No secrets, ' + call.get(caller).name + '.');
        return next(call);
      },
    });`,
  'node_modules/sluice-plugin-pii/node_modules/sluice/package.json': `{ "name": "sluice", "version": "0.0.1", "type": "module", "exports": "./index.js" }`,
  'node_modules/sluice-plugin-pii/node_modules/sluice/index.js': `throw new Error('a copy of Sluice was loaded');`,
};

/** The channel with a codec of its own that the page of channels shows. */
const [, vectors = ''] =
  /^```ts\n(\/\/ channels\/vectors\.ts\n[\s\S]*?)^```$/m.exec(
    readFileSync(join(home, 'channels/README.md'), 'utf8'),
  ) ?? [];

/** The gateway of a folder, by the command that its `npm start` runs: npm itself would pass no SIGHUP on. */
async function startIn(
  folder: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Running & { readonly url: string }> {
  const running = start(
    join(installFolder, 'node_modules/.bin/sluice'),
    ['start'],
    { ...environment, ...more },
    folder,
  );
  const [, url = ''] = await running.wrote(/listens on (http:\S+)/);
  return { ...running, url };
}

async function chat(url: string, model: string, content: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  });
}

async function embed(url: string, body: Readonly<Record<string, unknown>>): Promise<unknown> {
  const response = await fetch(`${url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}

/** Processes whose command line names this folder. */
function processesIn(folder: string): string[] {
  if (!existsSync('/proc')) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id) => {
      try {
        const line = readFileSync(`/proc/${id}/cmdline`, 'utf8');
        return line.includes(folder) ? [line.replaceAll('\0', ' ')] : [];
      } catch {
        return [];
      }
    });
}

describe('the package', () => {
  test('holds what runs, and nothing of the tests', () => {
    expect(packed).toEqual(
      expect.arrayContaining([
        'README.md',
        'LICENSE',
        'CHANGELOG.md',
        'gateway.config.ts',
        'core/cli/sluice.js',
        'dist/core/cli/main.js',
        'dist/core/sdk/index.js',
        'dist/core/sdk/index.d.ts',
        'dist/core/sdk/index.js.map',
        'dist/core/sdk/channel-kit.js',
        'dist/core/sdk/channel-kit.d.ts',
        'dist/core/sdk/testing/index.js',
        'dist/core/models/catalogue.json',
        'dist/plugins/dashboard/dist/index.html',
      ]),
    );
    const strangers = packed.filter((path) => /(^|\/)test\/|\.test\.|node_modules|\.tsx?$/.test(path));
    expect(
      strangers.filter((path) => !/\.d\.ts$|^docs\/template\/|^gateway\.config\.ts$/.test(path)),
    ).toEqual([]);
    expect(size).toBeLessThan(4 * 1024 * 1024);
  });

  test('becomes a gateway of one’s own, with plugins and channels of all origins', async () => {
    const upstream = await startUpstream((request, response) => {
      response.setHeader('content-type', 'application/json');
      if (request.url === '/embed') {
        response.end('{"vectors":[[0.5,1],[1,0.5]],"usage":{"input_tokens":7}}');
        return;
      }
      response.end(
        JSON.stringify({
          id: 'chatcmpl-1',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [
            {
              index: 0,
              message: { role: 'assistant', content: 'From the own channel.' },
              finish_reason: 'stop',
            },
          ],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        }),
      );
    });
    onTestFinished(() => upstream.close());
    const sluice = join(installFolder, 'node_modules/.bin/sluice');
    expect(await run(installFolder, sluice, 'init', 'my-gateway')).toContain('npm start');
    const folder = write('my-gateway', { ...thirdParty, 'channels/vectors.ts': vectors });
    const { dependencies, devDependencies } = readManifest(folder);
    const own = readManifest(home);
    expect(dependencies).toMatchObject({ rxjs: own.dependencies['rxjs'], zod: own.dependencies['zod'] });
    expect(devDependencies).toEqual({
      '@types/node': own.devDependencies['@types/node'],
      typescript: own.devDependencies['typescript'],
    });
    await installProject(folder);
    expect(await run(folder, process.execPath, '--run', 'types')).not.toContain('error');
    const config = join(folder, 'gateway.config.ts');
    writeFileSync(
      config,
      readFileSync(config, 'utf8')
        .replace(
          'export default',
          "import pii from 'sluice-plugin-pii';\nimport vectors from './channels/vectors.ts';\n\nexport default",
        )
        .replace('plugins: []', 'plugins: [pii()]')
        .replace(
          'channels: [',
          `channels: [vectors({ key: 'none', models: ['vectors-1'], baseUrl: '${upstream.url}' }), `,
        ),
    );
    const checked = await run(folder, process.execPath, '--run', 'check');
    expect(checked).toContain('The config is valid.');
    expect(checked).not.toContain('Packages that are not installed');
    const tested = await run(folder, process.execPath, '--run', 'test', '--', '--test-reporter=tap');
    expect(tested).toMatch(/^ok \d+ - replies tell by whom they were served$/m);
    expect(tested).toMatch(/^ok \d+ - local calls tools$/m);
    expect(tested).toMatch(/^# fail 0$/m);
    const gateway = await startIn(folder, { LOCAL_URL: upstream.url });
    const frugal = processesIn(installFolder).filter((line) => line.includes('--max-semi-space-size=16'));
    expect(frugal).toHaveLength(existsSync('/proc') ? 1 : 0);

    const answer = await chat(gateway.url, 'demo', 'hello');
    expect(answer.headers.get('x-powered-by')).toBe('my gateway');
    expect(JSON.stringify(await answer.json())).toContain('You said: hello');
    expect(JSON.stringify(await (await chat(gateway.url, 'local/m', 'hello')).json())).toContain(
      'From the own channel.',
    );
    const embedded = await embed(gateway.url, { model: 'vectors-1', input: ['one', 'two'], dimensions: 2 });
    expect(embedded).toMatchObject({
      data: [
        { index: 0, embedding: [0.5, 1] },
        { index: 1, embedding: [1, 0.5] },
      ],
      usage: { prompt_tokens: 7, total_tokens: 7 },
    });
    const sent = upstream.requests.find(({ url }) => url === '/embed');
    expect(sent?.headers.authorization).toBe('Bearer none');
    expect(JSON.parse(sent?.body.toString() ?? '')).toEqual({
      model: 'vectors-1',
      texts: ['one', 'two'],
      size: 2,
    });
    const refused = await chat(gateway.url, 'demo', 'a secret');
    expect(refused.status).toBe(403);
    expect(JSON.stringify(await refused.json())).toContain('No secrets, ');
    const page = await fetch(`${gateway.url}/dashboard/`);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('<div id="page">');

    const plugin = join(folder, 'plugins/powered-by.ts');
    writeFileSync(plugin, readFileSync(plugin, 'utf8').replace("'my gateway'", "'another name'"));
    gateway.child.kill('SIGHUP');
    await eventually(async () => {
      expect((await chat(gateway.url, 'demo', 'hello')).headers.get('x-powered-by')).toBe('another name');
    });

    gateway.child.kill('SIGTERM');
    const { stdout } = await gateway.ended;
    expect(stdout).toMatch(/"msg":"stopped"/);
    expect(stdout).not.toMatch(/"level":"(error|fatal)"/);
    await eventually(() => expect(processesIn(installFolder)).toEqual([]));
  });

  test('tells where it cannot be loaded from, and why', async () => {
    const broken = (config: string): Readonly<Record<string, string>> => ({
      ...thirdParty,
      'node_modules/half/package.json': `{ "name": "half", "version": "1.0.0", "type": "module", "exports": "./index.js" }`,
      'node_modules/half/index.js': 'export default (options) => ({ options, setup() {} });',
      'node_modules/typo/package.json': `{ "name": "typo", "version": "1.0.0", "type": "module", "exports": "./index.js" }`,
      'node_modules/typo/index.js': 'export default let;',
      'node_modules/needy/package.json': `{ "name": "needy", "version": "1.0.0", "type": "module", "exports": "./index.js" }`,
      'node_modules/needy/index.js': `throw new Error('no licence');`,
      'gateway.config.ts': config,
    });
    const tries: readonly (readonly [config: string, expected: RegExp])[] = [
      [
        `import half from 'half'; export default { plugins: [half({})] };`,
        /gateway\.config\.ts, plugins\[0\]: not a plugin, but an object with options, setup\./,
      ],
      [
        `import 'typo'; export default {};`,
        /gateway\.config\.ts cannot be loaded: .* \(in \S+node_modules\/typo\/index\.js:\d+:\d+\)/,
      ],
      [
        `import 'needy'; export default {};`,
        /cannot be loaded: no licence \(in \S+node_modules\/needy\/index\.js:\d+:\d+\)/,
      ],
      [
        `import 'absent'; export default {};`,
        /cannot be loaded: Cannot find package 'absent' imported from \S+gateway\.config\.ts/,
      ],
    ];
    for (const [index, [config, expected]] of tries.entries()) {
      const folder = write(`broken-${index}`, broken(config));
      const outcome = await start(
        join(installFolder, 'node_modules/.bin/sluice'),
        ['check'],
        environment,
        folder,
      ).ended;
      expect(outcome).toMatchObject({ code: 1, stderr: expect.stringMatching(expected) });
    }
  });

  test('serves a config in a folder without any packages', async () => {
    const alone = mkdtempSync(join(tmpdir(), 'sluice-alone-'));
    onTestFinished(() => rmSync(alone, { recursive: true, force: true }));
    writeFileSync(
      join(alone, 'gateway.config.ts'),
      `import { of } from 'rxjs'; import { z } from 'zod'; import { defineConfig } from 'sluice'; import demo from 'sluice/channels/demo'; import quota from 'sluice/plugins/quota';
       export default defineConfig({ plugins: [of(quota(z.object({}).parse({}))) && quota()], channels: [demo()] });`,
    );
    const outcome = await start(
      join(installFolder, 'node_modules/.bin/sluice'),
      ['check'],
      environment,
      alone,
    ).ended;
    expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining('The config is valid.') });
    expect(outcome.stdout).toContain(`zod, by ${join(alone, 'gateway.config.ts')}: npm install zod`);
    expect(outcome.stdout).toContain(`rxjs, by ${join(alone, 'gateway.config.ts')}: npm install rxjs`);
  });

  test('says which package of a cloud a channel needs, when it is not installed', async () => {
    const folder = write('cloud', {
      'gateway.config.ts': `import { defineConfig } from 'sluice';
       import azure from 'sluice/channels/azure-openai'; import bedrock from 'sluice/channels/bedrock'; import vertex from 'sluice/channels/vertex';
       export default defineConfig({ channels: [
         azure({ resource: 'mine', identity: { kind: 'default' }, models: ['gpt-4o'] }), bedrock({ region: 'us-east-1' }), vertex({ project: 'mine' }) ] });`,
    });
    const { code, stderr } = await start(
      join(installFolder, 'node_modules/.bin/sluice'),
      ['check'],
      environment,
      folder,
    ).ended;
    expect(code).toBe(1);
    for (const [index, name] of [
      '@azure/identity@4',
      '@aws-sdk/credential-providers@3',
      'google-auth-library@11',
    ].entries())
      expect(stderr).toMatch(new RegExp(`channels\\[${index}\\].*Install it: npm install ${name}\\.`));
  });

  test('makes no gateway where something else is', async () => {
    const folder = write('taken', { 'letter.txt': 'Dear reader' });
    const outcome = await start(
      join(installFolder, 'node_modules/.bin/sluice'),
      ['init', folder],
      environment,
    ).ended;
    expect(outcome).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not empty. It contains: letter.txt.'),
    });
    expect(readdirSync(folder)).toEqual(['letter.txt']);
  });
});

test('packing without installed packages ends with what to do, and without a stack trace', async () => {
  const clone = mkdtempSync(join(tmpdir(), 'sluice-clone-'));
  onTestFinished(() => rmSync(clone, { recursive: true, force: true }));
  const script = 'core/packaging/prepack.js';
  cpSync(join(home, script), join(clone, script), { recursive: true });
  cpSync(join(home, 'package.json'), join(clone, 'package.json'));
  await expect(run(clone, process.execPath, script)).rejects.toMatchObject({
    code: 1,
    stderr:
      'The package cannot be built: vite and typescript are not installed. Run "npm ci", then "npm pack".\n',
  });
});
