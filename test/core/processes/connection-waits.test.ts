import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface, type Interface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

test('a worker is told how long each of its connections waited for it', async () => {
  const { port } = await startPrimary([]);
  const waits = await Promise.all(
    Array.from({ length: 4 }, async () => Number(await text(connect(port, '127.0.0.1')))),
  );
  // The worker sleeps for 100 ms with each of them, and the last one waited for three others.
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...waits)).toBeGreaterThan(100);
});

test('connections beyond the most that may wait for a worker are closed at once, and reported', async () => {
  const { port, lines } = await startPrimary(['--each', '600000']);
  const turnedAway = once(lines, 'line');
  // The worker has one, and the next one is on its way to it: 20 wait, and one is too many.
  const sockets = Array.from({ length: 23 }, () => connect(port, '127.0.0.1').resume());
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.race(sockets.map((socket) => once(socket, 'close')));
  expect(await turnedAway).toEqual(['turned away 1']);
  expect(sockets.filter(({ closed }) => closed)).toHaveLength(1);
});

async function startPrimary(
  words: readonly string[],
): Promise<{ readonly port: number; readonly lines: Interface }> {
  const program = fileURLToPath(new URL('./_waiting.ts', import.meta.url));
  const primary = spawn(process.execPath, ['--conditions=sluice-source', program, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  onTestFinished(() => killGroup(primary));
  const lines = createInterface(primary.stdout);
  const [line] = (await once(lines, 'line')) as [string];
  return { port: Number(line), lines };
}

/** The worker sleeps, and would outlive its primary process. */
function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL');
}
