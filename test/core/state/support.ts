import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** The URL of a database file that does not exist yet. */
export function temporaryDatabase(): string {
  return `sqlite:${join(temporaryFolder(), 'sluice.db')}`;
}

/** Starts `other-process.ts`; see there for what it can do. */
export function startOtherProcess(
  url: string,
  command: string,
  argument = '',
): ChildProcessWithoutNullStreams {
  const script = join(import.meta.dirname, 'other-process.ts');
  const child = spawn(process.execPath, [script, url, command, argument]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** Lets `other-process.ts` do something, and returns what it printed. */
export async function inOtherProcess(url: string, command: string, argument = ''): Promise<string> {
  const child = startOtherProcess(url, command, argument);
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${errors}`);
  return output.trim();
}
