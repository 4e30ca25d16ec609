import { describe, expect, onTestFinished, test } from 'vitest';
import gemini from '../../../channels/gemini.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startGateway } from '../../support/gateway.ts';
import { startObjectServer, type Answer, type ObjectRequest } from '../../support/object-server.ts';

/** Handlers of the provider's upload requests, which tests may replace. */
interface Provider {
  address: (url: string, path: string) => string | undefined;
  more: Record<string, string>;
  resume: (request: ObjectRequest, answer: Answer) => void;
}

const active = { 'x-goog-upload-status': 'active' };
const isStart = ({ headers }: ObjectRequest): boolean => headers['x-goog-upload-command'] === 'start';

async function startStage(options: Parameters<typeof providerObjects>[0] = {}) {
  const provider: Provider = {
    address: (url, path) => `${url}${path}?upload_id=there&upload_protocol=resumable&key=AIza-of-a`,
    more: {},
    resume: (_request, answer) => answer(200, {}, active),
  };
  const google = await startObjectServer((request, answer) => {
    if (request.path.endsWith(':download')) return answer(200, 'bytes');
    if (request.path === '/v1beta/fileSearchStores') return answer(200, { name: 'fileSearchStores/s-1' });
    if (!isStart(request)) return provider.resume(request, answer);
    const address = provider.address(google.url, request.path);
    answer(200, '', {
      ...active,
      ...provider.more,
      ...(address === undefined ? {} : { 'x-goog-upload-url': address }),
    });
  });
  const gateway = await startGateway({
    plugins: [providerObjects(options)],
    channels: [gemini({ key: 'AIza-of-a', baseUrl: `${google.url}/v1beta`, models: ['gemini-a'] })],
  });
  onTestFinished(async () => {
    await gateway.close();
    await google.close();
  });
  const send = (url: string, headers: Record<string, string>, body = '', key = gateway.key) =>
    fetch(url, { method: 'POST', headers: { 'x-goog-api-key': key, ...headers }, body });
  const begin = (headers: Record<string, string> = {}, path = '/upload/v1beta/files') =>
    send(
      gateway.url + path,
      {
        'x-goog-upload-protocol': 'resumable',
        'x-goog-upload-command': 'start',
        'content-type': 'application/json',
        ...headers,
      },
      '{"file":{"displayName":"a"}}',
    );
  const begun = async (): Promise<string> => (await begin()).headers.get('x-goog-upload-url') ?? '';
  const goOn = (url: string, offset: number, body: string, command = 'upload') =>
    send(url, { 'x-goog-upload-command': command, 'x-goog-upload-offset': String(offset) }, body);
  return { google, gateway, provider, send, begin, begun, goOn };
}

describe('the beginning of an upload', () => {
  test('is told to the provider in the words of the client, and its answer to the client, both without other words', async () => {
    const { google, gateway, provider, begin } = await startStage();
    provider.more = {
      'x-goog-upload-chunk-granularity': '262144',
      'x-goog-upload-size-received': '0',
      'x-goog-upload-control-url': 'https://inside.test',
      'x-guploader-uploadid': 'inside',
    };
    const answer = await begin({
      'x-goog-upload-offset': '0',
      'x-goog-upload-header-content-length': '5',
      'x-goog-upload-header-content-type': 'text/plain',
      'x-goog-upload-file-name': 'a.txt',
      'x-goog-upload-other': 'x',
      cookie: 'a=b',
    });
    expect(await answer.json()).toEqual({});
    const uploadHeaders = Object.fromEntries(
      [...answer.headers].filter(([name]) => /goog|guploader/.test(name)),
    );
    expect(uploadHeaders).toEqual({
      'x-goog-upload-status': 'active',
      'x-goog-upload-chunk-granularity': '262144',
      'x-goog-upload-size-received': '0',
      'x-goog-upload-url': expect.stringMatching(
        new RegExp(`^${gateway.url}/upload/v1beta/files\\?upload_id=[\\w-]{32}&upload_protocol=resumable$`),
      ) as string,
    });
    const [startRequest] = google.requests;
    expect([startRequest?.method, startRequest?.path, String(startRequest?.body)]).toEqual([
      'POST',
      '/upload/v1beta/files',
      '{"file":{"displayName":"a"}}',
    ]);
    const passed = Object.entries(startRequest?.headers ?? {}).filter(([name]) =>
      /goog-upload|cookie/.test(name),
    );
    expect(Object.fromEntries(passed)).toEqual({
      'x-goog-upload-protocol': 'resumable',
      'x-goog-upload-command': 'start',
      'x-goog-upload-offset': '0',
      'x-goog-upload-header-content-length': '5',
      'x-goog-upload-header-content-type': 'text/plain',
      'x-goog-upload-file-name': 'a.txt',
    });
  });

  test('leads to where clients reach the gateway, and to the version by which it was asked', async () => {
    const { begin } = await startStage({ publicUrl: 'https://gateway.test/' });
    const address = (await begin({}, '/upload/v1/files')).headers.get('x-goog-upload-url');
    expect(address).toMatch(/^https:\/\/gateway\.test\/upload\/v1\/files\?upload_id=/);
  });

  test.each<[headers: Record<string, string>]>([
    [{ 'x-goog-upload-protocol': 'multipart' }],
    [{ 'x-goog-upload-command': 'upload' }],
    [{ 'x-goog-upload-command': 'upload, finalize' }],
  ])('without its words (%j) is refused, and the provider is not asked', async (headers) => {
    const { google, begin } = await startStage();
    const answer = await begin(headers);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('X-Goog-Upload-Protocol: resumable');
    expect(google.requests).toEqual([]);
  });

  test('of a file that is too large is refused, and one that is as large as allowed is not', async () => {
    const { google, begin } = await startStage({ fileSize: 1024 });
    expect((await begin({ 'x-goog-upload-header-content-length': '1025' })).status).toBe(413);
    expect(google.requests).toEqual([]);
    expect((await begin({ 'x-goog-upload-header-content-length': '1024' })).status).toBe(200);
  });

  test.each<[string, Provider['address']]>([
    ['none', () => undefined],
    ['no URL', () => 'upload here'],
    ['one without a name for the upload', (url, path) => `${url}${path}`],
    ['one that leads to another path', (url) => `${url}/upload/v1beta/files/other?upload_id=there`],
    ['one that leads to no upload', (url) => `${url}/v1beta/files?upload_id=there`],
  ])('for which the provider gives %s is 502', async (_, address) => {
    const stage = await startStage();
    stage.provider.address = address;
    const answer = await stage.begin();
    expect(answer.status).toBe(502);
    expect(await answer.text()).toContain('returned no URL for this upload');
    expect(answer.headers.get('x-goog-upload-url')).toBeNull();
  });
});

describe('the bytes of an upload', () => {
  test('go to the provider as they are, by the name that it gave, without its key in the query', async () => {
    const { google, begun, goOn } = await startStage();
    const answer = await goOn(await begun(), 0, 'one');
    expect([answer.status, answer.headers.get('x-goog-upload-status')]).toEqual([200, 'active']);
    const upload = google.requests[1];
    expect([upload?.path, Object.fromEntries(upload?.query ?? []), String(upload?.body)]).toEqual([
      '/upload/v1beta/files',
      { upload_id: 'there', upload_protocol: 'resumable' },
      'one',
    ]);
    expect(upload?.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'x-goog-upload-command': 'upload',
      'x-goog-upload-offset': '0',
    });
  });

  test('of nobody’s upload, or of another key’s, are 404', async () => {
    const { google, gateway, send, begun } = await startStage();
    const url = await begun();
    const { value } = await gateway.apiKeys.create({ name: 'other' });
    const words = { 'x-goog-upload-command': 'upload', 'x-goog-upload-offset': '0' };
    const answers = await Promise.all([
      send(url, words, 'x', value),
      send(url.replace(/upload_id=[\w-]+/, 'upload_id=unknown'), words, 'x'),
      send(url.replace(/upload_id=[\w-]+/, 'upload_id=a%2Fb'), words, 'x'),
      send(url.replace(/upload_id=[\w-]+/, 'upload_id='), words, 'x'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    expect(google.requests).toHaveLength(1);
  });

  test('end with the file, or with the word that it is final; nothing goes on behind it', async () => {
    const { provider, begun, goOn } = await startStage();
    for (const [body, headers] of [
      [{ file: { name: 'files/f-1' } }, {}],
      [{}, { 'x-goog-upload-status': 'final' }],
    ] as const) {
      provider.resume = (_request, answer) => answer(200, body, headers);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const url = await begun();
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await (await goOn(url, 0, 'all', 'upload, finalize')).json()).toEqual(body);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await goOn(url, 3, 'more')).status).toBe(404);
    }
  });

  test('may be fewer than none: a question how far it is changes nothing', async () => {
    const { google, provider, begun, goOn } = await startStage();
    const url = await begun();
    expect((await goOn(url, 0, 'one')).status).toBe(200);
    provider.resume = (_request, answer) =>
      answer(200, {}, { ...active, 'x-goog-upload-size-received': '3' });
    const answer = await goOn(url, 0, '', 'query');
    expect(answer.headers.get('x-goog-upload-size-received')).toBe('3');
    provider.resume = (_request, reply) => reply(200, { file: { name: 'files/f-1' } });
    expect((await goOn(url, 3, 'two', 'upload, finalize')).status).toBe(200);
    expect(google.requests.slice(1).map(({ body }) => String(body))).toEqual(['one', '', 'two']);
  });

  test('are no more than a file may have, over all requests', async () => {
    const { begun, goOn } = await startStage({ fileSize: 1024 });
    const url = await begun();
    expect((await goOn(url, 0, 'x'.repeat(1000))).status).toBe(200);
    const answer = await goOn(url, 1000, 'x'.repeat(25));
    expect(answer.status).toBe(413);
    expect((await goOn(url, 1000, 'x'.repeat(24))).status).toBe(200);
  });

  test('that the provider refuses leave the upload as it was', async () => {
    const { provider, begun, goOn } = await startStage();
    const url = await begun();
    provider.resume = (_request, answer) =>
      answer(503, { error: { message: 'busy', status: 'UNAVAILABLE' } });
    expect((await goOn(url, 0, 'one')).status).toBe(503);
    provider.resume = (_request, answer) => answer(200, { file: { name: 'files/f-1' } });
    expect((await goOn(url, 0, 'one', 'upload, finalize')).status).toBe(200);
  });
});

/** Whether a batch can be made of a file that came in these requests. */
describe('a file of requests that came in several requests', () => {
  const line = `${JSON.stringify({ key: 'a', request: { contents: [{ parts: [{ text: 'hi' }] }] } })}\n`;
  async function uploaded(
    pieces: readonly (readonly [offset: number, text: string])[],
    refused: readonly number[] = [],
  ) {
    const stage = await startStage();
    const { provider, gateway, begun, goOn, send } = stage;
    const url = await begun();
    for (const [index, [offset, text]] of pieces.entries()) {
      provider.resume = (_request, answer) => {
        if (refused.includes(index)) answer(503, { error: { message: 'busy' } });
        else if (index === pieces.length - 1) answer(200, { file: { name: 'files/f-1' } });
        else answer(200, {}, active);
      };
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await goOn(url, offset, text);
    }
    provider.resume = (_request, answer) => answer(200, { name: 'batches/b-1' });
    const made = await send(
      `${gateway.url}/v1beta/models/gemini-a:batchGenerateContent`,
      { 'content-type': 'application/json' },
      JSON.stringify({ batch: { displayName: 'd', inputConfig: { fileName: 'files/f-1' } } }),
    );
    return { status: made.status, text: await made.text() };
  }

  test('is known where each went on where the one before it ended', async () => {
    expect((await uploaded([[0, line]])).status).toBe(200);
    expect(
      (
        await uploaded([
          [0, line.slice(0, 20)],
          [20, line.slice(20)],
        ])
      ).status,
    ).toBe(200);
  });

  test('is not known where one began elsewhere, or one broke before', async () => {
    const { status, text } = await uploaded([
      [0, line],
      [5, line],
    ]);
    expect([status, text]).toEqual([
      400,
      expect.stringContaining('uploaded completely through this gateway'),
    ]);
    expect((await uploaded([[7, line]])).status).toBe(400);
    expect(
      (
        await uploaded([
          [0, line],
          [line.length + 1, line],
          [2 * line.length, line],
        ])
      ).status,
    ).toBe(400);
  });

  test('is known where the broken one is sent again', async () => {
    expect(
      (
        await uploaded(
          [
            [0, line],
            [0, line],
          ],
          [0],
        )
      ).status,
    ).toBe(200);
  });

  test('tells why it is none', async () => {
    const { status, text } = await uploaded([
      [0, 'no request\n'],
      [11, line],
    ]);
    expect([status, text]).toEqual([400, expect.stringContaining('does not begin with a JSON object')]);
  });
});

test('an id that would lead elsewhere is no file to download and no store to upload into', async () => {
  const { google, gateway, begin } = await startStage();
  for (const path of [
    '/v1beta/files/a.b:download',
    '/download/v1/files/a%2Fb:download',
    '/v1beta/files/unknown:download',
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const answer = await fetch(gateway.url + path, { headers: { 'x-goog-api-key': gateway.key } });
    expect([path, answer.status]).toEqual([path, 404]);
  }
  for (const store of ['a.b', 'unknown'])
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect((await begin({}, `/upload/v1beta/fileSearchStores/${store}:uploadToFileSearchStore`)).status).toBe(
      404,
    );
  expect(google.requests).toEqual([]);
});

test('a file that was uploaded is downloaded as bytes by both addresses', async () => {
  const { google, gateway, provider, begun, goOn } = await startStage();
  provider.resume = (_request, answer) => answer(200, { file: { name: 'files/f-1' } });
  await goOn(await begun(), 0, 'all', 'upload, finalize');
  for (const path of [
    '/v1beta/files/f-1:download',
    '/download/v1beta/files/f-1:download',
    '/v1/files/f-1:download',
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const answer = await fetch(gateway.url + path, { headers: { 'x-goog-api-key': gateway.key } });
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect([answer.status, await answer.text()]).toEqual([200, 'bytes']);
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
  }
  const upload = google.requests.at(-1);
  expect([upload?.path, upload?.query.get('alt')]).toEqual(['/v1beta/files/f-1:download', 'media']);
});
