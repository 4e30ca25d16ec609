import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { operatorFolder } from '../support/operator-folder.ts';
import { sluiceProgram } from '../support/program.ts';

test('a gateway whose output nobody reads any more stops when it is told to', async () => {
  const folder = operatorFolder({
    'gateway.config.ts': `export default { listen: { port: 0 }, database: 'sqlite:./s.db' };`,
  });
  const config = join(folder, 'gateway.config.ts');
  const child = spawn(process.execPath, [...sluiceProgram, 'start', '--config', config], {
    cwd: folder,
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exited = once(child, 'exit');
  try {
    let text = '';
    while (!text.includes('listens on')) {
      const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
      text += chunk.toString();
    }
    child.stdout.destroy();
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  } finally {
    child.kill('SIGKILL');
  }
});
