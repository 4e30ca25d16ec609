import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { channelMatrix } from '../../core/cli/matrix.ts';
import { sluice, start } from '../core/cli/_process.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { home, read } from './source.ts';

/** The commands in the README's code blocks that contain a word, each on one line, without comments. */
function commandsWith(word: string): string[] {
  return [...read('README.md').matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .flatMap(([, block = '']) =>
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

const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the README is true', () => {
  test.skipIf(!hasCurl)('every curl gets an answer from the gateway that "npm start" starts', async () => {
    const main = join(home, 'core/cli/sluice.js');
    const environment = { SLUICE_PORT: '0', SLUICE_DATA: operatorFolder(), SLUICE_LOG: 'silent' };
    const gateway = start(process.execPath, [main, 'start'], environment, home);
    const [, url = ''] = await gateway.wrote(/listens on (\S+)/);
    const [KEY] = await gateway.wrote(/sk-\w+/);
    const curls = commandsWith('curl ');
    expect(curls).toHaveLength(11);
    for (const command of curls) {
      const answer = await run(
        command.replace('http://localhost:8080', url).replace('-o hello.wav', '-o -'),
        {
          KEY,
        },
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

  test('its table of channels is what the channels say of themselves', async () => {
    const [, table = ''] = /<!-- matrix -->\n+([\s\S]*?)\n+<!-- \/matrix -->/.exec(read('README.md')) ?? [];
    // The formatter makes the columns of a table equally wide.
    const plain = (text: string): string => text.replaceAll(/-{3,}/g, '---').replaceAll(/ +/g, ' ');
    expect(plain(table)).toBe(plain(await channelMatrix()));
  });

  test('the configuration that it shows is sound', async () => {
    const [, shown = ''] = /^```ts\n(import \{ defineConfig[\s\S]*?)^```$/m.exec(read('README.md')) ?? [];
    const folder = operatorFolder({ 'gateway.config.ts': shown });
    const outcome = await sluice(['check'], { ANTHROPIC_API_KEY: 'k', GROQ_API_KEY: 'k' }, folder);
    expect(outcome).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('The config is sound.'),
    });
  });

  test('the commands for keys do what it says', async () => {
    const environment = { SLUICE_DATA: operatorFolder() };
    const commands = commandsWith('sluice key ').map((line) =>
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
});
