import { request as httpRequest } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import gemini from '../../../channels/gemini.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { startGeminiObjects } from '../../support/gemini-objects.ts';
import { connectionOf } from '../../support/sqlite.ts';

async function startStage() {
  const google = await startGeminiObjects();
  const gateway = await startGateway({
    plugins: [providerObjects()],
    channels: [gemini({ key: 'AIza-of-a', baseUrl: `${google.url}/v1beta`, models: ['gemini-a'] })],
  });
  onTestFinished(async () => {
    await gateway.close();
    await google.close();
  });
  return { google, gateway };
}

type Stage = Awaited<ReturnType<typeof startStage>>;

const last = { 'x-goog-upload-command': 'upload, finalize', 'x-goog-upload-offset': '0' };

/** Begins an upload, and returns where its bytes go. */
async function begin({ gateway }: Stage): Promise<string> {
  const answer = await fetch(`${gateway.url}/upload/v1beta/files`, {
    method: 'POST',
    headers: {
      'x-goog-api-key': gateway.key,
      'x-goog-upload-protocol': 'resumable',
      'x-goog-upload-command': 'start',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ file: { displayName: 'a' } }),
  });
  expect(await answer.json()).toEqual({});
  return answer.headers.get('x-goog-upload-url') ?? '';
}

/** Sends all bytes of an upload, and leaves once the provider has them and has not answered. The provider answers after that. */
async function leave({ google, gateway }: Stage, url: string): Promise<void> {
  const answer = Promise.withResolvers<void>();
  google.delays = answer.promise;
  const headers = { 'x-goog-api-key': gateway.key, ...last };
  const request = httpRequest(url, { method: 'POST', headers });
  request.on('error', () => {});
  request.end('a b c');
  await eventually(() => expect(google.requests.at(-1)?.body.toString()).toBe('a b c'));
  request.destroy();
  await eventually(() => expect(gateway.lines.some(({ status }) => status === 499)).toBe(true));
  google.delays = undefined;
  answer.resolve();
}

/** From now on the database takes no new objects. */
function failStore({ gateway }: Stage): void {
  connectionOf(gateway.stores).exec(
    "CREATE TRIGGER full BEFORE INSERT ON provider_objects BEGIN SELECT RAISE(ABORT, 'disk full'); END",
  );
}

const deleted = /^DELETE \/v1beta\/files\/[\w-]+$/;
const lastOf = ({ google }: Stage): string => {
  const { method, path } = google.requests.at(-1) ?? {};
  return `${method} ${path}`;
};

describe('a client that leaves after the last byte of a resumable upload', () => {
  test('finds the file among its files', async () => {
    const stage = await startStage();
    const { gateway } = stage;
    await leave(stage, await begin(stage));
    await eventually(async () => {
      const answer = await fetch(`${gateway.url}/v1beta/files`, {
        headers: { 'x-goog-api-key': gateway.key },
      });
      expect(await answer.json()).toMatchObject({ files: [{ sizeBytes: '5' }] });
    });
  });

  test('leaves nothing behind where the store fails', async () => {
    const stage = await startStage();
    const url = await begin(stage);
    failStore(stage);
    await leave(stage, url);
    await eventually(() => expect(lastOf(stage)).toMatch(deleted));
  });
});

test('a file that cannot be kept is deleted when its upload ends, and the client gets 503', async () => {
  const stage = await startStage();
  const url = await begin(stage);
  failStore(stage);
  const headers = { 'x-goog-api-key': stage.gateway.key, ...last };
  const answer = await fetch(url, { method: 'POST', headers, body: 'a b c' });
  expect(answer.status).toBe(503);
  await answer.body?.cancel();
  expect(lastOf(stage)).toMatch(deleted);
});
