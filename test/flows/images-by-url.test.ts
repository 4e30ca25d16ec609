/* oxlint-disable vitest/valid-expect -- one test serves many cases: the message says which it was. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { GatewayConfig, ModelTraits } from 'sluice';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import translation from '../../plugins/translation/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(300, 3)]);
const wav = Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVEfmt ', 'latin1'), Buffer.alloc(100, 5)]);
const pdf = Buffer.from('%PDF-1.7\nnot much of a document\n');
const csv = Buffer.from('name,age\nÄnne,7\n');
const files: Readonly<Record<string, readonly [string, Buffer]>> = {
  '/cat.png': ['image/png', png],
  '/sound.wav': ['audio/wav', wav],
  '/report.pdf': ['application/pdf', pdf],
  '/table.csv': ['text/csv', csv],
  '/page': ['text/html', Buffer.from('<html><h1>Please log in</h1></html>')],
};

/** Server of the files. */
interface FileServer {
  readonly url: string;
  readonly requests: string[];
  /** Answers that wait, for paths that begin with `/slow`. */
  readonly held: ServerResponse[];
  close(): Promise<void>;
}

async function startFiles(): Promise<FileServer> {
  const requests: string[] = [];
  const held: ServerResponse[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '';
    requests.push(path);
    response.on('error', () => {});
    const [type, bytes] = files[path] ?? [];
    if (path.startsWith('/slow')) held.push(response);
    else if (type === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': type }).end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    held,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Requests with an image in each format, with the paths of the URL and of the reply's text. */
interface Client {
  path(model: string): string;
  body(model: string, url: string): Json;
  readonly at: string;
  text(reply: Json): unknown;
  error(reply: Json): { readonly message?: unknown; readonly param?: unknown };
}

const inner = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((one, key) => (one as Json | undefined)?.[key as string], value);

const clients: Readonly<Record<string, Client>> = {
  'chat-completions': {
    path: () => '/v1/chat/completions',
    body: (model, url) => ({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'look' },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ],
    }),
    at: 'messages[0].content[1].image_url.url',
    text: (reply) => inner(reply, 'choices', 0, 'message', 'content'),
    error: (reply) => inner(reply, 'error') as Json,
  },
  messages: {
    path: () => '/v1/messages',
    body: (model, url) => ({
      model,
      max_tokens: 500,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'look' },
            { type: 'image', source: { type: 'url', url } },
          ],
        },
      ],
    }),
    at: 'messages[0].content[1].source.url',
    text: (reply) => inner(reply, 'content', 0, 'text'),
    error: (reply) => ({ message: inner(reply, 'error', 'message') }),
  },
  responses: {
    path: () => '/v1/responses',
    body: (model, url) => ({
      model,
      store: false,
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'look' },
            { type: 'input_image', image_url: url },
          ],
        },
      ],
    }),
    at: 'input[0].content[1].image_url',
    text: (reply) => inner(reply, 'output', 0, 'content', 0, 'text'),
    error: (reply) => inner(reply, 'error') as Json,
  },
  'generate-content': {
    path: (model) => `/v1beta/models/${model}:generateContent`,
    body: (_model, url) => ({
      contents: [
        { role: 'user', parts: [{ text: 'look' }, { fileData: { mimeType: 'image/png', fileUri: url } }] },
      ],
    }),
    at: 'contents[0].parts[1].fileData.fileUri',
    text: (reply) => inner(reply, 'candidates', 0, 'content', 'parts', 0, 'text'),
    error: (reply) => ({ message: inner(reply, 'error', 'message') }),
  },
};
const formats = ['chat-completions', 'messages', 'responses', 'generate-content'] as const;
const blind: Readonly<Record<string, ModelTraits>> = { '*': { fetchesUrls: false } };

/** A demo behind each format alone, whose model fetches nothing by itself (`blind-…`), and one that does (`seeing-…`). */
function channels(upstream: ScriptedUpstream): NonNullable<GatewayConfig['channels']> {
  return [
    ...formats.flatMap((format) => [
      demo({
        id: `blind-${format}`,
        speaks: [format],
        models: { [`blind-${format}`]: 'demo' },
        traits: blind,
      }),
      demo({ id: `seeing-${format}`, speaks: [format], models: { [`seeing-${format}`]: 'demo' } }),
    ]),
    openai({
      id: 'failing',
      key: 'sk-upstream',
      baseUrl: `${upstream.url}/failing/v1`,
      models: ['failover'],
      priority: 1,
      traits: blind,
    }),
    demo({ id: 'second', speaks: ['generate-content'], models: { failover: 'demo' }, traits: blind }),
    openai({
      id: 'plain',
      key: 'sk-upstream',
      baseUrl: `${upstream.url}/v1`,
      models: ['plain'],
      traits: { plain: { fetchesUrls: false, formats: ['chat-completions'] } },
    }),
  ];
}

const allow = ['127.0.0.1/32'];
let fileServer: FileServer;
let upstream: ScriptedUpstream;
let open: TestGateway;
let guarded: TestGateway;

beforeAll(async () => {
  fileServer = await startFiles();
  upstream = await startUpstream((request, response) => {
    if (request.url.startsWith('/failing')) response.writeHead(500).end('{}');
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voices['chat-completions'].whole('seen', 'plain')));
  });
  open = await startGateway({ channels: channels(upstream), fetch: { allow, total: 4000, timeout: 60_000 } });
  guarded = await startGateway({ channels: channels(upstream) });
});
afterAll(async () => {
  await open.close();
  await guarded.close();
  await upstream.close();
  await fileServer.close();
});
beforeEach(() => {
  fileServer.requests.length = 0;
  upstream.requests.length = 0;
});

interface Answer {
  readonly status: number;
  readonly reply: Json;
  readonly losses: string | null;
}

async function post(
  gateway: TestGateway,
  path: string,
  body: Json | string,
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    status: response.status,
    reply: (await response.json()) as Json,
    losses: response.headers.get('x-sluice-loss'),
  };
}

function sendImage(gateway: TestGateway, format: string, model: string, url: string): Promise<Answer> {
  const client = clients[format] as Client;
  return post(gateway, client.path(model), client.body(model, url));
}

/** Returns the demo's description of an image that it received. */
function described(type: string, mimeType: string, bytes: Buffer): string {
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 8);
  return `${type} (${mimeType}, ${bytes.length} bytes, sha256 ${digest})`;
}

const chat = (model: string, ...parts: readonly Json[]): Json => ({
  model,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, ...parts] }],
});
const image = (url: string): Json => ({ type: 'image_url', image_url: { url } });

describe.each(formats)('a client of %s', (format) => {
  const client = clients[format] as Client;

  test.each(formats)(
    'reaches a model behind %s with the bytes of a picture that only has an address',
    async (channelFormat) => {
      const { status, reply } = await sendImage(
        open,
        format,
        `blind-${channelFormat}`,
        `${fileServer.url}/cat.png`,
      );
      expect(status, JSON.stringify(reply)).toBe(200);
      expect(client.text(reply)).toContain(described('image', 'image/png', png));
      expect(fileServer.requests).toEqual(['/cat.png']);
    },
  );

  test.each(formats)(
    'has its address passed on to a model behind %s that looks by itself',
    async (channelFormat) => {
      const url = `${fileServer.url}/cat.png`;
      const { status, reply } = await sendImage(open, format, `seeing-${channelFormat}`, url);
      expect(status, JSON.stringify(reply)).toBe(200);
      expect(client.text(reply)).toContain(url);
      expect(fileServer.requests).toEqual([]);
    },
  );

  test('is refused a private address, with the field that holds it and no word of what is there', async () => {
    const { port } = new URL(fileServer.url);
    const nobody = 'http://127.0.0.1:9/cat.png';
    for (const url of [`${fileServer.url}/cat.png`, `http://localhost:${port}/cat.png`, nobody]) {
      const { status, reply } = await sendImage(guarded, format, 'blind-generate-content', url);
      expect(status, JSON.stringify(reply)).toBe(400);
      const { message, param } = client.error(reply);
      expect(message).toBe(`${client.at}: the file at this URL could not be fetched.`);
      if (format === 'chat-completions' || format === 'responses') expect(param).toBe(client.at);
      expect(JSON.stringify(reply)).not.toContain('127.0.0.1');
    }
    expect(fileServer.requests).toEqual([]);
  });

  test('is told when there is no picture at the address', async () => {
    const page = await sendImage(open, format, 'blind-generate-content', `${fileServer.url}/page`);
    expect(page.status).toBe(400);
    expect(client.error(page.reply).message).toBe(`${client.at}: the file at this URL is not an image.`);
    const gone = await sendImage(open, format, 'blind-generate-content', `${fileServer.url}/gone.png`);
    expect(gone.status).toBe(400);
    expect(client.error(gone.reply).message).toBe(`${client.at}: the server of this URL answered 404.`);
    const noUrl = await sendImage(open, format, 'blind-chat-completions', 'http://user:pw@127.0.0.1/cat.png');
    expect(noUrl.status).toBe(400);
    expect(client.error(noUrl.reply).message).toBe(
      `${client.at} must be a URL without a user name and a password.`,
    );
  });
});

describe('what only its format cannot carry by address', () => {
  test('a sound and a document reach chat completions as bytes', async () => {
    const body = {
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'look' },
            { fileData: { mimeType: 'audio/wav', fileUri: `${fileServer.url}/sound.wav` } },
            { fileData: { mimeType: 'application/pdf', fileUri: `${fileServer.url}/report.pdf` } },
            { fileData: { mimeType: 'image/png', fileUri: `${fileServer.url}/cat.png` } },
          ],
        },
      ],
    };
    const { status, reply } = await post(
      open,
      '/v1beta/models/seeing-chat-completions:generateContent',
      body,
    );
    expect(status, JSON.stringify(reply)).toBe(200);
    const text = String(clients['generate-content']?.text(reply));
    expect(text).toContain(described('audio', 'audio/wav', wav));
    expect(text).toContain(described('file', 'application/pdf', pdf));
    expect(text).toContain(`image at ${fileServer.url}/cat.png`);
    expect(fileServer.requests.toSorted()).toEqual(['/report.pdf', '/sound.wav']);
  });

  test('a sound reaches responses as bytes, and is not fetched for messages, which have no place for it', async () => {
    const body = {
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'look' },
            { fileData: { mimeType: 'audio/wav', fileUri: `${fileServer.url}/sound.wav` } },
          ],
        },
      ],
    };
    const carried = await post(open, '/v1beta/models/seeing-responses:generateContent', body);
    expect(carried.status, JSON.stringify(carried.reply)).toBe(200);
    expect(clients['generate-content']?.text(carried.reply)).toContain(described('audio', 'audio/wav', wav));
    expect(fileServer.requests).toEqual(['/sound.wav']);
    const refused = await post(open, '/v1beta/models/blind-messages:generateContent', body);
    expect(refused.status).toBe(400);
    expect(fileServer.requests).toEqual(['/sound.wav']);
  });

  test('a table reaches messages as its text, and keeps what the client called it', async () => {
    const part = (uri: string, mimeType?: string): Json => ({
      fileData: { fileUri: uri, ...(mimeType === undefined ? {} : { mimeType }) },
    });
    const body = {
      contents: [
        { role: 'user', parts: [{ text: 'look' }, part(`${fileServer.url}/table.csv`, 'text/csv')] },
      ],
    };
    const path = '/v1beta/models/seeing-messages:generateContent';
    const { status, reply } = await post(open, path, body);
    expect(status, JSON.stringify(reply)).toBe(200);
    expect(clients['generate-content']?.text(reply)).toContain(described('file', 'text/plain', csv));
  });

  test('an address without a type becomes the picture that it turns out to be', async () => {
    const { reply } = await post(open, '/v1/responses', {
      model: 'blind-generate-content',
      store: false,
      input: [{ role: 'user', content: [{ type: 'input_file', file_url: `${fileServer.url}/cat.png` }] }],
    });
    expect(clients.responses?.text(reply)).toContain(described('image', 'image/png', png));
  });

  test('a picture in the result of a tool is fetched too', async () => {
    const { status, reply } = await post(open, '/v1/messages', {
      model: 'blind-generate-content',
      max_tokens: 100,
      tools: [{ name: 'look', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: 'look' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [{ type: 'image', source: { type: 'url', url: `${fileServer.url}/cat.png` } }],
            },
          ],
        },
      ],
    });
    expect(status, JSON.stringify(reply)).toBe(200);
    expect(fileServer.requests).toEqual(['/cat.png']);
  });

  test('a file that another vendor keeps stays refused', async () => {
    const body = chat('blind-generate-content', { type: 'file', file: { file_id: 'file-1' } });
    const { status, reply } = await post(open, '/v1/chat/completions', body);
    expect(status).toBe(400);
    expect(inner(reply, 'error', 'code')).toBe('unsupported_content');
    expect(fileServer.requests).toEqual([]);
  });
});

describe('a model of the client’s own format that fetches nothing', () => {
  test('gets requests without addresses byte for byte', async () => {
    const texts = [
      '{ "model" : "plain","messages":[{"role":"user","content":"http://127.0.0.1/cat.png"}] }',
      `{"messages": [{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,${png.toString('base64')}"}}]}], "model":"plain"}`,
    ];
    for (const text of texts) expect((await post(open, '/v1/chat/completions', text)).status).toBe(200);
    expect(upstream.requests.map(({ body }) => body.toString())).toEqual(texts);
    expect(fileServer.requests).toEqual([]);
  });

  test('gets the bytes in place of the address, and all else as the client wrote it', async () => {
    const body = {
      ...chat('plain', {
        type: 'image_url',
        image_url: { url: `${fileServer.url}/cat.png`, detail: 'high' },
        vendor: 1,
      }),
      temperature: 0.5,
      vendor_field: { kept: true },
    };
    const { status } = await post(open, '/v1/chat/completions', body);
    expect(status).toBe(200);
    const sent = JSON.parse(upstream.requests[0]?.body.toString() ?? '') as Json;
    const url = `data:image/png;base64,${png.toString('base64')}`;
    expect(sent).toEqual({
      ...chat('plain', { type: 'image_url', image_url: { url, detail: 'high' }, vendor: 1 }),
      temperature: 0.5,
      vendor_field: { kept: true },
    });
  });

  test('plays a page of videos by itself', async () => {
    const page = 'https://www.youtube.com/watch?v=abc';
    const { status, reply } = await post(open, '/v1beta/models/blind-generate-content:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'look' }, { fileData: { fileUri: page } }] }],
    });
    expect(status, JSON.stringify(reply)).toBe(200);
    expect(clients['generate-content']?.text(reply)).toContain(page);
  });
});

describe('limits', () => {
  test('a second channel gets the same bytes, and the file is fetched once', async () => {
    const { status, reply } = await post(
      open,
      '/v1/chat/completions',
      chat('failover', image(`${fileServer.url}/cat.png`)),
    );
    expect(status, JSON.stringify(reply)).toBe(200);
    expect(clients['chat-completions']?.text(reply)).toContain(described('image', 'image/png', png));
    expect(upstream.requests.length).toBeGreaterThan(0);
    expect(fileServer.requests).toEqual(['/cat.png']);
  });

  test('one picture named many times is fetched once, and counts as often as it is sent', async () => {
    const some = Array.from({ length: 5 }, () => image(`${fileServer.url}/cat.png`));
    const fine = await post(open, '/v1/chat/completions', chat('blind-generate-content', ...some));
    expect(fine.status, JSON.stringify(fine.reply)).toBe(200);
    expect(fileServer.requests).toEqual(['/cat.png']);
    const many = Array.from({ length: 30 }, () => image(`${fileServer.url}/cat.png`));
    const { status, reply } = await post(
      open,
      '/v1/chat/completions',
      chat('blind-generate-content', ...many),
    );
    expect(status).toBe(400);
    expect(inner(reply, 'error', 'message')).toMatch(
      /^messages\[0\]\.content\[\d+\]\.image_url\.url: .* too large together\.$/,
    );
  });

  test('a client that leaves closes the connection to the server of its picture', async () => {
    const left = new AbortController();
    const url = `${fileServer.url}/slow.png`;
    const leaving = post(
      open,
      '/v1/chat/completions',
      chat('blind-generate-content', image(url)),
      left.signal,
    );
    await expect.poll(() => fileServer.held.length).toBe(1);
    const [held] = fileServer.held;
    const closed = new Promise<void>((resolve) => held?.once('close', resolve));
    left.abort();
    await expect(leaving).rejects.toThrow('aborted');
    await closed;
  });

  test('where fetching is off such content is refused, or dropped and named', async () => {
    for (const unsupported of ['refuse', 'drop'] as const) {
      const gateway = await startGateway({
        channels: channels(upstream),
        plugins: [translation({ unsupported })],
        fetch: { enabled: false, allow },
      });
      try {
        const url = `${fileServer.url}/cat.png`;
        const { status, reply, losses } = await sendImage(
          gateway,
          'chat-completions',
          'blind-generate-content',
          url,
        );
        expect(status, JSON.stringify(reply)).toBe(unsupported === 'refuse' ? 400 : 200);
        if (unsupported === 'refuse') expect(inner(reply, 'error', 'code')).toBe('unsupported_content');
        else expect(losses).toBe('messages[0].content[1]');
      } finally {
        await gateway.close();
      }
    }
    expect(fileServer.requests).toEqual([]);
  });
});
