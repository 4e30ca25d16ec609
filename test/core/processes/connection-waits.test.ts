import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

test('a worker is told how long each of its connections waited for it', async () => {
  const program = fileURLToPath(new URL('./_waiting.ts', import.meta.url));
  const primary = spawn(process.execPath, ['--conditions=sluice-source', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void primary.kill('SIGKILL'));
  const port = await new Promise<number>((resolve) => {
    primary.stdout.once('data', (line: Buffer) => resolve(Number(line.toString())));
  });
  const waits = await Promise.all(
    Array.from({ length: 4 }, async () => Number(await text(connect(port, '127.0.0.1')))),
  );
  // The worker sleeps for 100 ms with each of them, and the last one waited for three others.
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...waits)).toBeGreaterThan(100);
});
