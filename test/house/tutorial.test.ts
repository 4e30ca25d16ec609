import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { start } from '../core/cli/_process.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { home, read } from './source.ts';

const page = read('docs/tutorial.md');
const hasCurl = spawnSync('curl', ['--version']).status === 0;

/** The files of the tutorial by their paths, and its commands in order. */
const files = Object.fromEntries(
  [...page.matchAll(/^```ts\n(\/\/ (\S+)\n[\s\S]*?)^```$/gm)].map(([, code = '', path = '']) => [path, code]),
);
const commands = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block.trim());

test.skipIf(!hasCurl)('the tutorial works from its first line to its last', async () => {
  const folder = operatorFolder(files);
  const own = (text: string): string => text.replaceAll('my-gateway', join(folder, 'my-gateway'));
  const environment = { SLUICE_PORT: '0', SLUICE_LOG: 'silent', SLUICE_DATA: join(folder, 'data') };
  const [check = '', begin = '', makeKey = '', chat = '', messages = '', list = '', dear = '', runTest = ''] =
    commands.map(own);
  const shell = async (command: string, more: Record<string, string> = {}): Promise<string> => {
    const bin = `${join(home, 'node_modules/.bin')}:${process.env.PATH}`;
    // What `npx` finds in the repository: its own command, and its own Node.
    const local = command
      .replaceAll('npx sluice', `node ${join(home, 'core/cli/sluice.js')}`)
      .replaceAll('npx node', 'node');
    const { stdout } = await promisify(execFile)('sh', ['-ec', local], {
      cwd: home,
      env: { PATH: bin, HOME: process.env.HOME, ...environment, ...more },
    });
    return stdout;
  };

  expect(await shell(check)).toMatch(/assistant/);
  expect(begin).toMatch(/^npx sluice start /);
  const [, config = ''] = /--config (\S+)/.exec(begin) ?? [];
  const gateway = start(
    process.execPath,
    [join(home, 'core/cli/sluice.js'), 'start', '--config', config],
    environment,
    home,
  );
  const [, url = ''] = await gateway.wrote(/listens on (http:\S+)/);
  const key = (await shell(`${makeKey}\nprintf %s "$KEY"`)).trim();
  const call = (command: string): Promise<string> =>
    shell(command.replace('http://localhost:8080', url), { KEY: key });

  // The gateway follows the database within a second.
  await expect.poll(() => call(chat)).toMatch(/You said: Hello/);
  expect(await call(messages)).toMatch(/You said: Hello/);
  expect(await call(dear)).toMatch(/insufficient_quota/);
  const about = { SLUICE_CONFIG: config, SLUICE_PORT: new URL(url).port };
  await expect.poll(() => shell(list, about)).toMatch(/second/);
  expect(await shell(runTest)).toMatch(/pass 1/);
  const refused = await call(chat.replace('"Hello"', '"a secret"'));
  expect(refused).toMatch(/Remove the word/);
});
