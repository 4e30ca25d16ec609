import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { startUpstream } from '../support/upstream.ts';
import { voices } from './_wire.ts';

const home = fileURLToPath(new URL('../../', import.meta.url));
/** Maximum number of files to open in order to follow a call. */
const mostFiles = 25;

/** The rows of the page: a file and a function of it. */
function steps(): readonly { readonly file: string; readonly name: string }[] {
  const page = readFileSync(join(home, 'docs/explanation/path-of-a-call.md'), 'utf8');
  return [...page.matchAll(/\| \[([\w./-]+)\]\([\w./-]+\)\s*\| `(\w+)`\s*\|/g)].map(
    ([, file = '', name = '']) => ({ file, name }),
  );
}

/** Runs the job and returns the functions that ran meanwhile, each as `file function`. */
async function functionsOf(job: () => Promise<void>): Promise<ReadonlySet<string>> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.post('Profiler.takePreciseCoverage');
    await job();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return new Set(
      result.flatMap(({ url, functions }) =>
        functions
          .filter(({ ranges: [whole] }) => (whole?.count ?? 0) > 0)
          .map(({ functionName }) => `${url} ${functionName}`),
      ),
    );
  } finally {
    session.disconnect();
  }
}

test('the page on the path of a call names functions that the call runs through, in at most 25 files', async () => {
  const { channel, frames } = voices.messages;
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(frames(['Hello', ' there']).join(''));
  });
  const gateway = await startGateway({ channels: [channel(upstream.url, { models: ['m'] })] });
  try {
    const sendChat = async (): Promise<string> => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: '{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}',
      });
      return response.text();
    };
    // What is loaded or made once does not belong to a call.
    await sendChat();
    const ran = await functionsOf(async () => {
      await gateway.forgetLines();
      expect(await sendChat()).toContain('Hello');
      await expect.poll(() => gateway.lines.some(({ status }) => status === 200)).toBe(true);
    });
    const named = steps();
    const missing = named.filter(
      ({ file, name }) => !ran.has(`${pathToFileURL(join(home, file)).href} ${name}`),
    );
    expect(missing).toEqual([]);
    expect(named.length).toBeGreaterThan(20);
    expect(new Set(named.map(({ file }) => file)).size).toBeLessThanOrEqual(mostFiles);
  } finally {
    await gateway.close();
    await upstream.close();
  }
});
