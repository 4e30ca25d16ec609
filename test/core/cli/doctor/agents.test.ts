import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import demo from '../../../../channels/demo/index.ts';
import { doctorAgents } from '../../../../core/cli/doctor/agents/index.ts';
import type { Tried } from '../../../../core/cli/doctor/agents/try-agent.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { startUpstream } from '../../../support/upstream.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { sluice, start } from '../_process.ts';
import { sluiceProgram } from '../../../support/program.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ channels: [demo({ models: { only: 'demo' } })] });
});
afterAll(() => gateway.close());

/** A program in JavaScript that stands for an agent, in a folder of its own. */
function program(name: string, script: string): string {
  const folder = temporaryFolder();
  const file = join(folder, name);
  writeFileSync(file, `#!${process.execPath}\n${script}`);
  chmodSync(file, 0o755);
  return folder;
}

/** Script of a fake agent: reads the settings that `connect` writes for Codex, and sends requests. */
const codex = `
const { readFileSync, writeFileSync } = require('node:fs');
const settings = readFileSync(process.env.HOME + '/.codex/config.toml', 'utf8');
const of = (name) => new RegExp(name + ' = "(.*)"').exec(settings)[1];
const ask = async (input, more = {}) => {
  const answer = await fetch(of('base_url') + '/responses', {
    method: 'POST',
    headers: { authorization: 'Bearer ' + of('experimental_bearer_token'), 'content-type': 'application/json' },
    body: JSON.stringify({ model: of('model'), input, stream: true, ...more }),
  });
  return answer.text();
};
const tools = [{ type: 'function', name: 'get_goal', parameters: { type: 'object', properties: {} } }];
`;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function run(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly tried: readonly Tried[] }> {
  const out: string[] = [];
  const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void out.push(line));
  try {
    const code = await doctorAgents(['--url', gateway.url, '--key', gateway.key, '--json', ...args]);
    return { code, tried: JSON.parse(out.join('\n')) as Tried[] };
  } finally {
    log.mockRestore();
  }
}

describe('sluice doctor agents', () => {
  test('tells what an agent does: answers, streams, tools and lists', async () => {
    const folder = program(
      'codex',
      `${codex}
      const main = async () => {
        await fetch(of('base_url') + '/models', { headers: { authorization: 'Bearer ' + of('experimental_bearer_token') } });
        const said = [{ role: 'user', content: process.argv.at(-1) }];
        const first = await ask(said, { tools });
        const call = JSON.parse(/^data: (.*"response.output_item.done".*"function_call".*)$/m.exec(first)[1]).item;
        await ask([...said, call, { type: 'function_call_output', call_id: call.call_id, output: 'done' }], { tools });
        console.log('done');
      };
      main();`,
    );
    const { code, tried } = await run('--path', folder);
    expect(tried).toEqual([
      {
        name: 'codex',
        title: 'Codex CLI',
        answers: true,
        streams: true,
        tools: 'works',
        listsModels: true,
        requests: 3,
      },
    ]);
    expect(code).toBe(0);
  });

  test('shows an agent neither the home nor the variables of the user, and leaves nothing behind', async () => {
    const note = join(temporaryFolder(), 'note.json');
    const folder = program(
      'codex',
      `${codex}
      writeFileSync(${JSON.stringify(note)}, JSON.stringify({ home: process.env.HOME, names: Object.keys(process.env) }));
      writeFileSync(process.env.HOME + '/left', 'x');
      ask('Hello').then(() => console.log('ok'));`,
    );
    vi.stubEnv('OPENAI_API_KEY', 'of-the-user');
    const { code, tried } = await run('--path', folder);
    vi.unstubAllEnvs();
    expect([code, tried[0]?.answers, tried[0]?.tools]).toEqual([0, true, 'none']);
    const { home, names } = JSON.parse(readFileSync(note, 'utf8')) as { home: string; names: string[] };
    expect(home).not.toBe(process.env['HOME']);
    expect(existsSync(home)).toBe(false);
    expect(names).not.toContain('OPENAI_API_KEY');
  });

  test('says why an agent does not work, and ends one that hangs with all that it has started', async () => {
    const note = join(temporaryFolder(), 'pid');
    const hanging = program(
      'codex',
      `const { spawn } = require('node:child_process');
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
      require('node:fs').writeFileSync(${JSON.stringify(note)}, String(child.pid));
      setInterval(() => {}, 1000);`,
    );
    const broken = program('llm', "console.error('no such option --no-log'); process.exit(2);");
    const refused = program(
      'aider',
      `const settings = require('node:fs').readFileSync(process.env.HOME + '/.aider.conf.yml', 'utf8');
      const base = /openai-api-base: (.*)/.exec(settings)[1];
      fetch(base + '/chat/completions', { method: 'POST', body: '{}', headers: { authorization: 'Bearer wrong' } }).then(() => process.exit(1));`,
    );
    const path = [hanging, broken, refused].join(delimiter);
    const { code, tried } = await run('--path', path, '--timeout', '2');
    expect(code).toBe(1);
    expect(tried.map(({ name, answers, why }) => [name, answers, why])).toEqual([
      ['codex', false, 'the agent did not exit in time'],
      [
        'aider',
        false,
        expect.stringMatching(
          /^the gateway responded to \/v1\/chat\/completions with 401: Incorrect API key/,
        ),
      ],
      ['llm', false, 'the agent sent no request: no such option --no-log'],
    ]);
    const pid = Number(readFileSync(note, 'utf8'));
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test('says that the gateway does not answer, which is waited for as long as the agent', async () => {
    let posts = 0;
    const silent = await startUpstream((request, response) => {
      if (request.method === 'POST') posts += 1;
      else response.end('{"status":"ok","data":[{"id":"only"}]}');
    });
    try {
      const folder = program(
        'codex',
        `${codex} setTimeout(() => process.exit(1), 1_500); ask('Hello').catch(() => {});`,
      );
      const { code, tried } = await run('--url', silent.url, '--path', folder, '--timeout', '60');
      expect([code, posts, tried[0]?.requests]).toEqual([1, 1, 1]);
      expect(tried[0]?.why).toMatch(/^the gateway did not respond to \/v1\/responses: /);
    } finally {
      await silent.close();
    }
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'leaves neither agents nor folders behind when %s ends it',
    async (signal) => {
      const note = join(temporaryFolder(), 'note.json');
      const folder = program(
        'codex',
        `require('node:fs').writeFileSync(${JSON.stringify(`${note}.tmp`)}, JSON.stringify({ pid: process.pid, home: process.env.HOME }));
        require('node:fs').renameSync(${JSON.stringify(`${note}.tmp`)}, ${JSON.stringify(note)});
        setInterval(() => {}, 1000);`,
      );
      const args = ['doctor', 'agents', '--url', gateway.url, '--key', gateway.key, '--path', folder];
      const running = start(process.execPath, [...sluiceProgram, ...args]);
      await expect.poll(() => existsSync(note)).toBe(true);
      const { pid, home } = JSON.parse(readFileSync(note, 'utf8')) as { pid: number; home: string };
      running.child.kill(signal);
      expect(await running.ended).toMatchObject({ code: null, signal });
      await expect.poll(() => isAlive(pid)).toBe(false);
      expect(existsSync(home)).toBe(false);
    },
  );

  test('refuses to run agents without a key', async () => {
    const folder = program('codex', 'process.exit(1)');
    const args = ['--path', folder, '--offline', '--model', 'only', '--key-env', 'NONE'];
    await expect(doctorAgents(['--url', gateway.url, ...args])).rejects.toThrow(/needs an API key/);
  });

  test('says what is not installed, and prints a table', async () => {
    const folder = program('codex', `${codex} ask('Hello').then(() => console.log('ok'));`);
    const args = ['doctor', 'agents', '--url', gateway.url, '--key', gateway.key, '--path'];
    const environment = { PATH: process.env['PATH'] ?? '' };
    const table = await sluice([...args, folder], environment);
    expect(table.stdout).toMatch(
      /^agent +answers +streams +tools +models +requests\nCodex CLI +yes +yes +none +not asked +1/,
    );
    expect(`${table.stdout}${table.stderr}`).not.toContain(gateway.key);
    const none = await sluice([...args, temporaryFolder()], environment);
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('No known agent is installed')]);
    const other = await sluice([...args, folder, 'crush'], environment);
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('Crush is not installed')]);
  });
});

const installed = process.env['SLUICE_TEST_AGENTS'];

describe.skipIf(installed === undefined)('the agents in SLUICE_TEST_AGENTS', () => {
  test('all work with what "sluice connect" writes', { timeout: 900_000 }, async () => {
    const { tried } = await run('--path', installed ?? '');
    expect(tried.filter(({ answers, streams }) => !answers || !streams)).toEqual([]);
    const withoutTools = tried.filter(({ tools }) => tools !== 'works').map(({ name }) => name);
    // It has none.
    expect(withoutTools.filter((name) => name !== 'aider')).toEqual([]);
  });
});
