import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import demo from '../../../../channels/demo/index.ts';
import { connect as command } from '../../../../core/cli/connect.ts';
import { explain } from '../../../../core/cli/explain.ts';
import { UsageError } from '../../../../core/cli/command.ts';
import { agents } from '../../../../core/cli/connect/agents/index.ts';
import type { Access, SettingsEnvironment } from '../../../../core/cli/connect/agent.ts';
import { shownDiff } from '../../../../core/cli/connect/diff.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { startUpstream } from '../../../support/upstream.ts';
import { sluice, type Outcome } from '../_process.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ channels: [demo({ models: { demo: 'demo', tiny: 'demo' } })] });
});
afterAll(() => gateway.close());

/** Runs the command in this process, which spares a start for each of many. */
async function run(...args: readonly string[]): Promise<Outcome> {
  const out: string[] = [];
  const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void out.push(line));
  try {
    const code = await command.run(args);
    return { code, signal: null, stdout: out.join('\n'), stderr: '' };
  } catch (error) {
    const code = error instanceof UsageError ? 2 : 1;
    return { code, signal: null, stdout: out.join('\n'), stderr: explain(error) };
  } finally {
    log.mockRestore();
  }
}

/** Connects an agent in a home of the test's own. */
function connect(agent: string, home: string, ...more: readonly string[]): Promise<Outcome> {
  const key = more.some((word) => word.startsWith('--key')) ? [] : ['--key', gateway.key];
  return run(agent, '--url', gateway.url, '--dir', home, ...key, ...more);
}

/** The same with a key that the agent reads from a variable. */
async function connectByVariable(agent: string, home: string): Promise<Outcome> {
  vi.stubEnv('MY_KEY', gateway.key);
  try {
    return await connect(agent, home, '--key-env', 'MY_KEY', '--model', 'demo', '--write');
  } finally {
    vi.unstubAllEnvs();
  }
}

const written = agents.filter(({ plan }) => plan(accessOf('sk-x'), placesOf('/home')).files.length > 0);

function accessOf(value: string): Access {
  return { url: 'http://x', key: { value }, model: 'demo', smallModel: 'tiny' };
}
function placesOf(home: string): SettingsEnvironment {
  return { home, platform: 'linux', variable: () => undefined };
}

/** The files that an agent has after it was connected. */
function filesOf(name: string, home: string): readonly string[] {
  const agent = agents.find((one) => one.name === name);
  return agent?.plan(accessOf('sk-x'), placesOf(home)).files.map(({ path }) => path) ?? [];
}

const texts = (files: readonly string[]): readonly string[] =>
  files.map((file) => readFileSync(file, 'utf8'));

describe.each(written.map(({ name }) => name))('%s', (name) => {
  test('is connected, keeps its files to its owner, stays as it is the second time, and is as before at last', async () => {
    const home = temporaryFolder();
    const shown = await connect(name, home, '--model', 'demo');
    expect({ code: shown.code, stderr: shown.stderr }).toEqual({ code: 0, stderr: '' });
    expect(shown.stdout).toContain('Nothing was written. To write the changes add --write.');
    const files = filesOf(name, home);
    expect(files.filter((file) => existsSync(file))).toEqual([]);

    const first = await connect(name, home, '--model', 'demo', '--write');
    expect(first.code).toBe(0);
    const after = texts(files);
    expect(after.join('\n')).toContain(gateway.url);
    expect(after.join('\n')).toContain('demo');
    for (const file of files) expect(statSync(file).mode & 0o777).toBe(0o600);

    const again = await connect(name, home, '--model', 'demo', '--write');
    expect(again.stdout).toContain('is already connected.');
    expect(texts(files)).toEqual(after);
    for (const { stdout, stderr } of [shown, first, again])
      expect(`${stdout}${stderr}`).not.toContain(gateway.key);

    const undone = await connect(name, home, '--undo');
    expect(undone.code).toBe(0);
    expect(files.filter((file) => existsSync(file) || existsSync(`${file}.sluice-backup`))).toEqual([]);
    expect((await connect(name, home, '--undo')).stdout).toContain('There is nothing to undo');
  });

  test('gets no key into its files where it reads a variable', async () => {
    const home = temporaryFolder();
    const { code, stderr } = await connectByVariable(name, home);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const file of filesOf(name, home))
      if (existsSync(file)) expect(readFileSync(file, 'utf8')).not.toContain(gateway.key);
  });
});

describe('sluice connect', () => {
  const settings = (home: string): string => join(home, '.claude', 'settings.json');
  const withSettings = (text: string, mode = 0o600): string => {
    const home = temporaryFolder();
    mkdirSync(dirname(settings(home)), { recursive: true });
    writeFileSync(settings(home), text, { mode });
    chmodSync(settings(home), mode);
    return home;
  };
  const before =
    '{\n  "theme": "dark",\n  "env": { "ANTHROPIC_AUTH_TOKEN": "sk-old-0123456789abcdef", "A": "1" }\n}\n';

  test('keeps what is there, and undoing gives it back to the letter', async () => {
    const home = withSettings(before);
    const { stdout } = await connect('claude-code', home, '--model', 'demo', '--write');
    expect(JSON.parse(readFileSync(settings(home), 'utf8'))).toMatchObject({
      theme: 'dark',
      env: { A: '1', ANTHROPIC_AUTH_TOKEN: gateway.key, ANTHROPIC_BASE_URL: gateway.url },
    });
    expect(stdout).not.toContain('sk-old-0123456789abcdef');
    await connect('claude-code', home, '--undo');
    expect(readFileSync(settings(home), 'utf8')).toBe(before);
  });

  test('undoes its own members alone where somebody else has changed the file since', async () => {
    const home = withSettings(before);
    await connect('claude-code', home, '--model', 'demo', '--write');
    const now = readFileSync(settings(home), 'utf8').replace('"dark"', '"light"');
    writeFileSync(settings(home), now);
    const { stdout } = await connect('claude-code', home, '--undo');
    expect(stdout).toContain('edited');
    expect(JSON.parse(readFileSync(settings(home), 'utf8'))).toEqual({
      theme: 'light',
      env: { A: '1', ANTHROPIC_AUTH_TOKEN: 'sk-old-0123456789abcdef' },
    });
  });

  test('undoes two runs, with a change of somebody else between them', async () => {
    const home = withSettings(before);
    await connect('claude-code', home, '--model', 'demo', '--write');
    writeFileSync(settings(home), readFileSync(settings(home), 'utf8').replace('"dark"', '"light"'));
    await connect('claude-code', home, '--model', 'tiny', '--write');
    await connect('claude-code', home, '--undo');
    expect(JSON.parse(readFileSync(settings(home), 'utf8'))).toEqual({
      theme: 'light',
      env: { A: '1', ANTHROPIC_AUTH_TOKEN: 'sk-old-0123456789abcdef' },
    });
  });

  test('says which files could not be undone and why, and undoes the others', async () => {
    const home = temporaryFolder();
    await connect('llm', home, '--model', 'demo', '--write');
    const [models = '', keys = ''] = filesOf('llm', home);
    writeFileSync(keys, '{ broken');
    const { code, stderr, stdout } = await connect('llm', home, '--undo');
    expect(code).toBe(1);
    expect(stderr).toContain(`${keys} was not restored: it is not valid JSON`);
    expect(stdout).toContain(`${models}: removed`);
    writeFileSync(keys, '{ "other": "x", "sluice": "y" }');
    expect((await connect('llm', home, '--undo')).code).toBe(0);
    expect(JSON.parse(readFileSync(keys, 'utf8'))).toEqual({ other: 'x' });
    await connect('llm', home, '--model', 'demo', '--write');
    writeFileSync(`${keys}.sluice-backup`, 'no JSON');
    expect((await connect('llm', home, '--undo')).stderr).toContain('is not a backup of "sluice connect"');
  });

  test('takes its items out of a list that somebody else has changed since, and no other', async () => {
    const home = temporaryFolder();
    const [file = ''] = filesOf('qwen-code', home);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '{"modelProviders": {"openai": [{"id": "mine"}]}}', { mode: 0o600 });
    await connect('qwen-code', home, '--model', 'demo', '--write');
    await connect('qwen-code', home, '--model', 'demo', '--small-model', 'tiny', '--write');
    const now = JSON.parse(readFileSync(file, 'utf8')) as { modelProviders: { openai: object[] } };
    now.modelProviders.openai = [{ id: 'mine' }, { id: 'later' }];
    writeFileSync(file, JSON.stringify(now));
    const { code, stderr } = await connect('qwen-code', home, '--undo');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      modelProviders: { openai: [{ id: 'mine' }, { id: 'later' }] },
    });
  });

  test('says what the gateway answers when it fails, and asks for names with any characters', async () => {
    const paths: string[] = [];
    const other = await startUpstream((request, response) => {
      paths.push(request.url ?? '');
      if (request.url === '/healthz') return void response.end('{"status":"ok"}');
      response.statusCode = request.url === '/v1/models' && paths.length > 3 ? 503 : 200;
      response.end(response.statusCode === 503 ? '{"error":{"message":"Too busy."}}' : '{"data":[]}');
    });
    try {
      const model = 'org/a?b#c%';
      await connect('codex', temporaryFolder(), '--url', other.url, '--model', model);
      expect(paths).toContain('/v1beta/models/org/a%3Fb%23c%25');
      const { stderr } = await connect('codex', temporaryFolder(), '--url', other.url, '--model', 'demo');
      expect(stderr).toContain('GET /v1/models returned status 503. Too busy.');
      expect(stderr).not.toContain('key');
    } finally {
      await other.close();
    }
  });

  test('puts no key into a file that others can read, and writes no other file then', async () => {
    const home = withSettings(before, 0o644);
    const { code, stderr } = await connect('claude-code', home, '--model', 'demo', '--write');
    expect(code).toBe(1);
    expect(stderr).toContain(`chmod 600 ${settings(home)}`);
    expect(readFileSync(settings(home), 'utf8')).toBe(before);
    const named = await connectByVariable('claude-code', home);
    expect(named.code).toBe(0);
    expect(statSync(settings(home)).mode & 0o777).toBe(0o644);
    expect(JSON.parse(readFileSync(settings(home), 'utf8'))).toMatchObject({
      apiKeyHelper: 'printenv MY_KEY',
    });
  });

  test('writes through a link, which stays one', async () => {
    const home = withSettings(before);
    const other = temporaryFolder();
    mkdirSync(join(other, '.claude'));
    symlinkSync(settings(home), settings(other));
    await connect('claude-code', other, '--model', 'demo', '--write');
    expect(readFileSync(settings(home), 'utf8')).toContain(gateway.url);
  });

  test('leaves a broken file alone, and says where it is broken', async () => {
    const home = withSettings('{\n  "theme": \n');
    const { code, stderr } = await connect('claude-code', home, '--model', 'demo', '--write');
    expect(code).toBe(1);
    expect(stderr).toMatch(/settings\.json was not changed: it is not valid JSON/);
  });

  test('says what to do when the gateway does not know the key, the model or itself', async () => {
    const home = temporaryFolder();
    const unknown = await connect('codex', home, '--key', 'sk-wrong', '--model', 'demo');
    expect(unknown.stderr).toContain('does not know this API key');
    expect((await connect('codex', home, '--model', 'nope')).stderr).toContain(
      'The model "nope" does not exist, or this API key may not use it. The gateway lists: demo, tiny',
    );
    expect((await connect('codex', home)).stderr).toContain(
      'Choose a model with --model. The gateway lists: demo, tiny',
    );
    const other = await startUpstream((_request, response) => void response.end('hello'));
    try {
      const wrong = await connect('codex', home, '--url', other.url, '--model', 'demo');
      expect(wrong.stderr).toContain('is not a Sluice gateway');
    } finally {
      await other.close();
    }
    const away = await connect('codex', home, '--url', 'http://127.0.0.1:9', '--model', 'demo');
    expect([away.code, away.stderr]).toEqual([1, expect.stringContaining('set its address with --url')]);
  });

  test('lists the agents, and names them for a word that is none', async () => {
    expect((await sluice(['connect'])).stdout).toMatch(/claude-code +Claude Code[\s\S]*cursor/);
    const { code, stderr } = await sluice(['connect', 'emacs']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('Unknown agent "emacs"')]);
  });

  test('says what to do by hand for agents whose settings stand in no file', async () => {
    for (const { name } of agents.filter((agent) => !written.includes(agent))) {
      // oxlint-disable-next-line no-await-in-loop
      const { code, stdout } = await connect(name, temporaryFolder(), '--model', 'demo', '--write');
      expect([name, code]).toEqual([name, 0]);
      expect(stdout).toContain(gateway.url);
      expect(stdout).not.toContain(gateway.key);
    }
  });
});

test('a diff shows no secret, neither the new one nor an old one', () => {
  const lines = (key: string): string =>
    [`{"apiKey": "${key}",`, `token: ${key}`, `GEMINI_API_KEY=${key}`, `"sluice": "${key}"`, 'x: 1'].join(
      '\n',
    );
  const shown = shownDiff(lines('old-secret-word'), lines('new-secret-word'));
  expect(shown).not.toContain('secret-word');
  expect(shown).toContain('+ {"apiKey": "new-…"');
  const theirs = [
    '{"env": {"GITHUB_PAT": "canary-1", "DATABASE_URL": "postgres://u:canary-2@h/d"}, "args": ["--key", "canary-3"]}',
    '"SECRET_KEY_BASE": "canary-4",',
    '"Authorization": "Bearer canary-5"',
    "password = 'canary-6'",
    'token: |',
    '  canary-7',
    '# old key: canary-8',
    'export PAT=canary-9',
    '- canary-10 canary-11',
    'x = { a = "canary-12" } # canary-13',
    '"multi": "canary-14',
  ];
  for (const line of theirs) {
    const diff = shownDiff(
      `${line}\nmodel: old`,
      `${line}\nmodel: demo (Sluice)`,
      new Set(['demo (Sluice)']),
    );
    expect(diff).not.toContain('canary-');
    expect(diff).toContain('+ model: demo (Sluice)');
  }
  expect(shownDiff('', theirs.join('\n'))).toContain('"GITHUB_PAT"');
  expect(shownDiff('"apiKey": "a"', '"apiKey": "{env:NAME}"\nenv_key = "NAME"')).toContain('{env:NAME}');
});

test('every command of the page works', async () => {
  const page = readFileSync(new URL('../../../../docs/guides/agents.md', import.meta.url), 'utf8');
  const commands = [...page.matchAll(/^(?:(\w+)=\$SLUICE_KEY )?npx sluice (connect .*)$/gm)];
  expect(commands.length).toBeGreaterThanOrEqual(5);
  const home = temporaryFolder();
  const own = await startGateway({ channels: [demo()] });
  try {
    for (const [, variable = 'UNUSED', words = ''] of commands) {
      const args = words.replace('http://localhost:8080', own.url).split(' ');
      // oxlint-disable-next-line no-await-in-loop
      const { code, stderr } = await sluice([...args, '--dir', home], {
        SLUICE_URL: own.url,
        SLUICE_KEY: own.key,
        [variable]: own.key,
      });
      expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' });
    }
  } finally {
    await own.close();
  }
});
