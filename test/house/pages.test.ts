import { execFile, spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { existsSync, statSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { examine } from '../../core/cli/check.ts';
import { channelMatrix } from '../../core/cli/matrix.ts';
import { start } from '../core/cli/_process.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { everyFile, home, read } from './source.ts';

/** Every page of the repository. */
const pages = everyFile().filter((path) => path.endsWith('.md') && !path.startsWith('test/'));

/** Returns the code blocks of a language. */
function blocksOf(page: string, language: string): readonly string[] {
  return [...read(page).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, block = '']) => block,
  );
}

/** Returns the shell commands of a page that contain a word, each on one line, without comments. */
function commandsWith(page: string, word: string): string[] {
  return blocksOf(page, 'sh')
    .flatMap((block) =>
      block
        .replaceAll(/^#.*\n/gm, '')
        .replaceAll('\\\n', ' ')
        .split('\n'),
    )
    .map((line) => line.trim())
    .filter((line) => line.includes(word));
}

async function run(command: string, environment: Record<string, string>): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
  });
  return stdout;
}

/** Starts the gateway of the repository and returns the address and the key that it prints. */
async function startHere(folder: string) {
  const main = join(home, 'core/cli/sluice.js');
  const environment = { SLUICE_PORT: '0', SLUICE_DATA: folder, SLUICE_LOG: 'silent' };
  const gateway = start(process.execPath, [main, 'start'], environment, home);
  const [, url = ''] = await gateway.wrote(/listens on (\S+)/);
  const [KEY] = await gateway.wrote(/sk-\w+/);
  return { url, KEY };
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the pages are true', () => {
  test.skipIf(!hasCurl)('every curl gets an answer from the gateway that "npm start" starts', async () => {
    const { url, KEY } = await startHere(operatorFolder());
    const curls = ['README.md', 'docs/guides/clients.md'].flatMap((page) => commandsWith(page, 'curl '));
    expect(curls).toHaveLength(12);
    for (const command of curls) {
      const answer = await run(
        command.replace('http://localhost:8080', url).replace('-o hello.wav', '-o -'),
        { KEY },
      );
      const chats = /You said: Hello|"You"[\s\S]*" said"[\s\S]*" Hello"/;
      const expected = command.includes('/embeddings')
        ? /"embedding": ?\[/
        : command.includes('/speech')
          ? /^RIFF/
          : chats;
      expect({ command, answer: answer.replaceAll(/\s+/g, ' ') }).toMatchObject({
        command,
        answer: expect.stringMatching(expected),
      });
    }
  });

  test('the channel matrix is what the channels say of themselves', async () => {
    const [, table = ''] =
      /<!-- matrix -->\n+([\s\S]*?)\n+<!-- \/matrix -->/.exec(read('docs/reference/channels.md')) ?? [];
    // The formatter makes the columns of a table equally wide.
    const plain = (text: string): string => text.replaceAll(/-{3,}/g, '---').replaceAll(/ +/g, ' ');
    expect(plain(table)).toBe(plain(await channelMatrix()));
  });

  /** Returns the result of `sluice check` for a configuration in a page. */
  function checked(shown: string): ReturnType<typeof examine> {
    return examine(join(operatorFolder({ 'gateway.config.ts': shown }), 'gateway.config.ts'));
  }

  test.each(['README.md', 'docs/guides/configure.md'])('the configuration in %s is sound', async (page) => {
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv('ANTHROPIC_API_KEY', 'k');
    vi.stubEnv('GROQ_API_KEY', 'k');
    const shown = blocksOf(page, 'ts').find((block) => block.includes('defineConfig')) ?? '';
    expect(await checked(shown)).toMatchObject({
      problems: [],
      description: expect.stringContaining('groq'),
    });
  });

  const shownByTelemetry = blocksOf('docs/guides/telemetry.md', 'ts').map(
    (block, index) => [index, block] as const,
  );

  test.each(shownByTelemetry)(
    'configuration %i in docs/guides/telemetry.md is sound',
    async (_index, shown) => {
      expect(await checked(shown)).toMatchObject({
        problems: [],
        description: expect.stringContaining('telemetry'),
      });
    },
  );

  const shownByAlerts = blocksOf('docs/guides/alerts.md', 'ts').map(
    (block, index) => [index, block] as const,
  );

  test.each(shownByAlerts)('configuration %i in docs/guides/alerts.md is sound', async (_index, shown) => {
    expect(await checked(shown)).toMatchObject({
      problems: [],
      description: expect.stringContaining('alerts'),
    });
  });

  test('the plugin in the README refuses the word and nothing else', async () => {
    const plugin = blocksOf('README.md', 'ts').find((block) => block.includes('definePlugin')) ?? '';
    const folder = operatorFolder({
      'plugins/no-secrets.ts': plugin,
      'gateway.config.ts': `import demo from 'sluice/channels/demo'; export default { channels: [demo()] };`,
    });
    const gateway = start(
      process.execPath,
      [join(home, 'core/cli/sluice.js'), 'start'],
      { SLUICE_PORT: '0', SLUICE_LOG: 'silent' },
      folder,
    );
    const [, url = ''] = await gateway.wrote(/listens on (\S+)/);
    const [key] = await gateway.wrote(/sk-\w+/);
    const statusOf = async (content: string): Promise<number> => {
      const { status } = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }] }),
      });
      return status;
    };
    expect([await statusOf('a secret'), await statusOf('Hello')]).toEqual([403, 200]);
  });

  test('the commands for keys do what the page says', async () => {
    const environment = { SLUICE_DATA: operatorFolder() };
    const commands = commandsWith('docs/guides/keys-and-budgets.md', 'sluice key ').map((line) =>
      line.replace('npx sluice', `"${process.execPath}" core/cli/sluice.js`),
    );
    const [created = '', listed = '', revoked = ''] = [
      await run(commands[0] ?? '', environment),
      await run(commands[1] ?? '', environment),
      await run(commands[2] ?? '', environment),
    ];
    expect(created).toMatch(/^sk-\w{40,}$/m);
    expect(listed).toContain('demo, claude-*');
    expect(revoked).toContain('"ci"');
  });

  test('the README has at most 150 lines', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(151);
  });

  test('the changelog is read in a minute for each of its readers', () => {
    const parts = read('CHANGELOG.md').split(/^##+ /m).slice(1);
    const words = parts.map((part) => ({ part: part.split('\n', 1)[0], words: part.split(/\s+/).length }));
    expect(words.filter((one) => one.words > 400)).toEqual([]);
  });
});

/** Returns the name by which a heading is linked to, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsIn(page: string): readonly string[] {
  return [
    ...read(page)
      .replaceAll(/^```[\s\S]*?^```$/gm, '')
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading = '']) => anchorOf(heading));
}

test.each(pages)('links in %s lead to files and headings that exist', (page) => {
  const targets = [
    ...read(page)
      .replaceAll(/^```[\s\S]*?^```$/gm, '')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
  const broken = targets.filter((target) => {
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : join(dirname(page), path);
    if (!existsSync(join(home, file))) return true;
    if (anchor === undefined) return false;
    return statSync(join(home, file)).isDirectory() || !anchorsIn(file).includes(anchor);
  });
  expect(broken).toEqual([]);
});
