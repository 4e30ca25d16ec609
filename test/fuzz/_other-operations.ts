import { patience } from '../support/patience.ts';
import { readdirSync, readlinkSync } from 'node:fs';
import { Agent, request as send, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Busboy } from '@fastify/busboy';
import cohere from '../../channels/cohere/index.ts';
import demo from '../../channels/demo/index.ts';
import { stripes } from '../../channels/demo/png.ts';
import doubao from '../../channels/doubao.ts';
import gemini from '../../channels/gemini.ts';
import groq from '../../channels/groq.ts';
import jimeng from '../../channels/jimeng/index.ts';
import jina from '../../channels/jina.ts';
import kling from '../../channels/kling/index.ts';
import openai from '../../channels/openai.ts';
import sora from '../../channels/sora.ts';
import vidu from '../../channels/vidu.ts';
import voyage from '../../channels/voyage/index.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import { discover } from '../../core/config/discover.ts';
import { asWave } from '../../core/formats/_shared/speech.ts';
import type { Format, Operation, Route } from '../../core/sdk/format.ts';
import type { JsonObject, JsonValue } from '../../core/model/json.ts';
import { vendors, VideoUpstream } from '../flows/_video-vendors.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

/** Endpoint that accepts POST, other than those for chats. */
export interface Endpoint {
  readonly format: Format;
  readonly route: Route;
  readonly operation: Operation;
  /** `embeddings · embed · /v1/embeddings`. */
  readonly name: string;
  /** Returns the path for a model; most endpoints have the model in the body. */
  path(model: string): string;
  readonly takesJson: boolean;
  readonly takesForms: boolean;
}

const chats: ReadonlySet<string> = new Set(['chat', 'count-tokens', 'compact']);

/** Returns all formats, as the gateway finds them. */
export async function everyFormat(): Promise<readonly Format[]> {
  const folder = fileURLToPath(new URL('../../core/formats/', import.meta.url));
  const { found } = await discover(folder, 'folders');
  return found.map(({ value }) => value as Format);
}

/** Returns all endpoints that accept POST, other than those for chats. */
export async function allEndpoints(): Promise<readonly Endpoint[]> {
  return (await everyFormat()).flatMap((format) =>
    format.routes
      .filter(({ method, operation }) => method === 'POST' && !chats.has(operation))
      .map((route): Endpoint => {
        const query = new URLSearchParams(route.query).toString();
        return {
          format,
          route,
          operation: route.operation as Operation,
          name: `${format.name} · ${route.operation} · ${route.path}`,
          path: (model) =>
            route.path.replace('*model', model).replace('\\:', ':').replace(':id', 'video_none') +
            (query === '' ? '' : `?${query}`),
          takesJson: route.accepts?.includes('json') ?? true,
          takesForms: route.accepts?.includes('form') ?? false,
        };
      }),
  );
}

/** A part of a form as a test writes it. */
export interface Part {
  readonly name: string;
  readonly value: Buffer | string;
  readonly filename?: string;
  readonly type?: string;
}

export const recording = asWave(Buffer.alloc(4_800, 7), 24_000);
const colours = [
  [255, 0, 0],
  [0, 0, 255],
] as const;
export const picture = stripes(64, 64, colours);
const pictureUrl = `data:image/png;base64,${picture.toString('base64')}`;

const recorded = (name: string, value: string | Buffer = recording): Part => ({
  name,
  value,
  filename: 'a.wav',
  type: 'audio/wav',
});
const drawn = (name: string): Part => ({ name, value: picture, filename: 'a.png', type: 'image/png' });

const content = { parts: [{ text: 'one' }, { text: 'two' }] };
/** Sound bodies without their model, by operation, or by format and operation where the format has words of its own. */
const bodies: Readonly<Record<string, readonly JsonObject[]>> = {
  embed: [
    { input: 'one two' },
    {
      input: ['one', 'two'],
      dimensions: 64,
      encoding_format: 'base64',
      user: 'u',
      odd: { deep: [1, 'x'] },
    },
    { input: ['one'], encoding_format: 'float' },
    { input: [1, 2, 3] },
    { input: [[1, 2], [3]], encoding_format: 'base64' },
    { input: 'one', input_type: 'query', task: 'separation' },
  ],
  'generate-content embed': [
    { content, taskType: 'RETRIEVAL_QUERY', outputDimensionality: 64 },
    {
      requests: [
        { model: 'models/x', content, taskType: 'RETRIEVAL_DOCUMENT', title: 'A title' },
        { model: 'models/x', content: { parts: [{ text: 'three' }] }, odd: 1 },
      ],
    },
  ],
  rerank: [
    { query: 'which', documents: ['one', 'two which'], top_n: 1, return_documents: true },
    {
      query: 'which',
      documents: [{ text: 'one', title: 'A title' }, { title: 'two' }],
      rank_fields: ['title', 'text'],
      max_chunks_per_doc: 3,
      overlap_tokens: 2,
      max_tokens_per_doc: 100,
    },
    { query: 'which', documents: ['one', { text: 'two' }], top_k: 5, truncation: false, odd: [null] },
  ],
  moderate: [
    { input: 'be kind' },
    { input: ['be kind', 'kill it'], odd: 1 },
    {
      input: [
        { type: 'text', text: 'be kind' },
        { type: 'image_url', image_url: { url: pictureUrl } },
      ],
    },
  ],
  speak: [
    { input: 'Hello you', voice: 'nova' },
    { input: 'Hello', voice: { id: 'voice_1' }, response_format: 'pcm', speed: 1.5, instructions: 'softly' },
    { input: 'Hello', voice: 'nova', stream_format: 'sse', odd: {} },
  ],
  'generate-image': [
    { prompt: 'the moon', n: 2, size: '256x256', response_format: 'b64_json' },
    { prompt: 'the moon', size: '512x512', quality: 'auto', user: 'u', odd: 1 },
    { prompt: 'the moon', stream: true, partial_images: 1, size: '64x64', background: 'opaque' },
  ],
  'edit-image': [
    { prompt: 'redder', images: [{ image_url: pictureUrl }], size: '256x256' },
    { prompt: 'redder', images: [{ image_url: pictureUrl }], mask: { image_url: pictureUrl }, stream: true },
  ],
  'vary-image': [{}],
  ocr: [
    {
      document: { type: 'document_url', document_url: 'data:application/pdf;base64,JVBERi0xLjQ=' },
      pages: '0,2-4',
    },
    { document: { image_url: { url: pictureUrl } }, include_image_base64: true, image_limit: 2, odd: [null] },
    {
      document: { document_url: 'https://example.com/a.pdf', document_name: 'a' },
      pages: [0, 1],
      document_annotation_format: {
        type: 'json_schema',
        json_schema: { name: 'a', schema: { type: 'object' } },
      },
    },
  ],
  transcribe: [{}],
  'translate-audio': [{}],
  'create-video': [
    { prompt: 'the moon', seconds: '8', size: '1280x720', seed: 3, odd: 1 },
    { prompt: 'the moon', duration: 5, image: pictureUrl, metadata: { odd: 1 }, aspect_ratio: '16:9' },
  ],
  'kling create-video': [
    { prompt: 'the moon', duration: '10', aspect_ratio: '16:9', mode: 'std', cfg_scale: 0.5 },
    { prompt: 'the moon', image: pictureUrl, image_tail: pictureUrl },
  ],
  'jimeng create-video': [
    { prompt: 'the moon', frames: 121, seed: -1, aspect_ratio: '16:9' },
    { prompt: 'the moon', image_urls: ['https://example.com/a.png'] },
  ],
  'ark create-video': [
    { content: [{ type: 'text', text: 'the moon --dur 5' }], seed: 1, ratio: '16:9' },
    {
      content: [
        { type: 'text', text: 'the moon' },
        { type: 'image_url', image_url: { url: pictureUrl }, role: 'first_frame' },
      ],
    },
  ],
  'vidu create-video': [
    { prompt: 'the moon', duration: 5, aspect_ratio: '16:9' },
    { prompt: 'the moon', images: [pictureUrl], seed: 3 },
    { prompt: 'the moon', images: [pictureUrl, pictureUrl] },
  ],
  'generate-content create-video': [
    { instances: [{ prompt: 'the moon' }], parameters: { durationSeconds: 8, aspectRatio: '16:9' } },
    {
      instances: [
        {
          prompt: 'the moon',
          image: { bytesBase64Encoded: picture.toString('base64'), mimeType: 'image/png' },
        },
      ],
    },
  ],
};

/** Sound forms without their model, by operation. */
const forms: Readonly<Record<string, readonly (readonly Part[])[]>> = {
  transcribe: [
    [recorded('file')],
    [
      { name: 'response_format', value: 'verbose_json' },
      recorded('file'),
      { name: 'timestamp_granularities[]', value: 'word' },
      { name: 'timestamp_granularities[]', value: 'segment' },
      { name: 'language', value: 'en' },
      { name: 'temperature', value: '0.5' },
      { name: 'odd[]', value: 'x' },
    ],
    [recorded('file'), { name: 'stream', value: 'true' }, { name: 'chunking_strategy', value: 'auto' }],
    [recorded('file'), { name: 'response_format', value: 'srt' }, { name: 'prompt', value: 'names' }],
  ],
  'translate-audio': [
    [recorded('file'), { name: 'prompt', value: 'names' }],
    [recorded('file'), { name: 'response_format', value: 'text' }, { name: 'temperature', value: '0' }],
  ],
  'edit-image': [
    [drawn('image'), { name: 'prompt', value: 'redder' }, { name: 'size', value: '256x256' }],
    [
      drawn('image[]'),
      drawn('image[]'),
      drawn('mask'),
      { name: 'prompt', value: 'redder' },
      { name: 'n', value: '2' },
      { name: 'stream', value: 'true' },
    ],
  ],
  'vary-image': [[drawn('image'), { name: 'n', value: '1' }, { name: 'size', value: '256x256' }]],
  'create-video': [
    [
      { name: 'prompt', value: 'the moon' },
      { name: 'seconds', value: '4' },
      { name: 'size', value: '1280x720' },
      { name: 'metadata', value: '{"odd":1}' },
      drawn('input_reference'),
    ],
  ],
};

/** Returns valid bodies for a path. Throws when there is none for its operation. */
export function bodiesFor({
  format,
  operation,
}: Pick<Endpoint, 'format' | 'operation'>): readonly JsonObject[] {
  const found = bodies[`${format.name} ${operation}`] ?? bodies[operation];
  if (found === undefined) throw new Error(`No sound bodies are known for ${format.name} · ${operation}.`);
  return found;
}

/** Returns valid forms for a path. Throws when there is none for its operation. */
export function formsFor({ operation }: Pick<Endpoint, 'operation'>): readonly (readonly Part[])[] {
  const found = forms[operation];
  if (found === undefined) throw new Error(`No sound forms are known for ${operation}.`);
  return found;
}

/** The member of a body that names the model; undefined where the path does. */
export function modelField({ format }: Pick<Endpoint, 'format'>): string | undefined {
  if (format.name === 'generate-content') return undefined;
  return { kling: 'model_name', jimeng: 'req_key' }[format.name] ?? 'model';
}

const videoKinds = { sora, kling, jimeng, doubao, vidu, gemini };
const videoModels = vendors.map(({ model }) => model);
const models: { readonly [O in Operation]?: readonly string[] } = {
  embed: ['text-embedding-3-small', 'embed-v4.0', 'jina-embeddings-v4', 'voyage-4', 'gemini-embedding-001'],
  rerank: ['rerank-v4.0', 'jina-reranker-v3', 'rerank-2.5'],
  moderate: ['omni-moderation-latest'],
  transcribe: ['whisper-1', 'gpt-4o-transcribe', 'whisper-large-v3'],
  'translate-audio': ['whisper-1'],
  speak: ['tts-1', 'gpt-4o-mini-tts', 'gemini-2.5-flash-preview-tts'],
  'generate-image': [
    'gpt-image-1',
    'dall-e-2',
    'dall-e-3',
    'gemini-2.5-flash-image',
    'imagen-4.0-generate-001',
  ],
  'edit-image': ['gpt-image-1', 'dall-e-2', 'gemini-2.5-flash-image'],
  'vary-image': ['dall-e-2'],
  'create-video': videoModels,
};

/** The scripted providers' models that do an operation. */
export function modelsFor(operation: Operation): readonly string[] {
  return models[operation] ?? [];
}

/** A gateway in front of the demo and of a scripted provider that plays all others. */
export interface Playground {
  readonly gateway: TestGateway;
  readonly upstream: ScriptedUpstream;
  close(): Promise<void>;
}

type Script = (request: SeenRequest, response: import('node:http').ServerResponse) => void;

/** Starts both. Without a script the provider answers soundly whatever it is asked, and fails on what is no sound request. */
export async function startPlayground(
  config: Partial<GatewayConfig> = {},
  script?: Script,
): Promise<Playground> {
  const videos = new VideoUpstream();
  const upstream: ScriptedUpstream = await startUpstream((request, response) => {
    upstream.requests.splice(0, upstream.requests.length - 1);
    if (script !== undefined) script(request, response);
    else answerSoundly(request, response, videos);
  });
  const at = (names: readonly string[], path = '/v1') => ({
    key: 'provider-key',
    baseUrl: upstream.url + path,
    models: names,
  });
  const isGoogle = (name: string): boolean => /^(gemini|imagen)-/.test(name);
  const gateway = await startGateway({
    channels: [
      demo(),
      openai(
        at([
          ...new Set(
            [
              'moderate',
              'transcribe',
              'translate-audio',
              'speak',
              'generate-image',
              'edit-image',
              'vary-image',
            ]
              .flatMap((operation) => modelsFor(operation as Operation))
              .filter((name) => !isGoogle(name) && name !== 'whisper-large-v3'),
          ),
          'text-embedding-3-small',
        ]),
      ),
      gemini(at([...new Set(Object.values(models).flat().filter(isGoogle))], '/v1beta')),
      groq(at(['whisper-large-v3'])),
      cohere(at(['embed-v4.0', 'rerank-v4.0'], '')),
      jina(at(['jina-embeddings-v4', 'jina-reranker-v3'])),
      voyage(at(['voyage-4', 'rerank-2.5'], '/voyage/v1')),
      ...vendors.map(({ kind, key, base, model }) =>
        videoKinds[kind as keyof typeof videoKinds]({
          id: `video-${kind}`,
          key,
          baseUrl: `${upstream.url}/${kind}${base}`,
          models: [model],
        }),
      ),
    ],
    health: { enabled: false },
    // Nothing outside this machine is asked for.
    fetch: { enabled: false },
    ...config,
  });
  return {
    gateway,
    upstream,
    close: async () => {
      await gateway.close();
      await upstream.close();
    },
  };
}

const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? (value as readonly JsonValue[]) : [value ?? ''];
const vector = [0.5, -1, 0.25];

/** A form that a provider got. Rejects when it is damaged. */
export function readParts({ headers, body }: SeenRequest): Promise<readonly Part[]> {
  return new Promise((resolve, reject) => {
    if (Number(headers['content-length']) !== body.length)
      throw new Error('The form is longer or shorter than was announced.');
    const parts: Part[] = [];
    const parser = new Busboy({
      headers: { 'content-type': headers['content-type'] ?? '' },
      isPartAFile: (_name, _type, filename) => filename !== undefined,
      preservePath: true,
    });
    parser.on('field', (name, value) => void parts.push({ name, value }));
    parser.on('file', (name, stream, filename, _encoding, type) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => void parts.push({ name, value: Buffer.concat(chunks), filename, type }));
    });
    parser.on('finish', () => resolve(parts));
    parser.on('error', reject);
    parser.end(body);
  });
}

/** Responses of each provider by kind of request. Bodies must be JSON or forms. */
function answerSoundly(
  request: SeenRequest,
  response: import('node:http').ServerResponse,
  videos: VideoUpstream,
): void {
  if (vendors.some(({ kind }) => request.url.startsWith(`/${kind}/`))) {
    videos.script(request, response);
    return;
  }
  const finish = (reply: Answering): void => {
    response.writeHead(200, { 'content-type': reply.type }).end(reply.body);
  };
  const isForm = request.headers['content-type']?.startsWith('multipart/') === true;
  if (!isForm) finish(soundReply(request.url, JSON.parse(request.body.toString()) as JsonObject));
  else
    void readParts(request).then((parts) => {
      const fields = parts.flatMap(({ name, value }) => (typeof value === 'string' ? [[name, value]] : []));
      finish(soundReply(request.url, Object.fromEntries(fields) as JsonObject));
    });
}

/** A reply: its media type and its bytes. */
export interface Answering {
  readonly type: string;
  readonly body: string | Buffer;
}

const json = (body: JsonObject): Answering => ({ type: 'application/json', body: JSON.stringify(body) });
const sse = (...frames: readonly JsonObject[]): Answering => ({
  type: 'text/event-stream',
  body: frames.map((frame) => `event: ${String(frame.type)}\ndata: ${JSON.stringify(frame)}\n\n`).join(''),
});

/** Returns the reply of a provider to a request at this URL. */
export function soundReply(url: string, body: JsonObject): Answering {
  const streams = body.stream === true || body.stream === 'true';
  if (url.includes(':batchEmbedContents'))
    return json({
      embeddings: listOf(body.requests).map(() => ({ values: vector })),
      usageMetadata: { promptTokenCount: 3 },
    });
  if (url.includes('tts:generateContent'))
    return json({
      candidates: [
        {
          content: {
            parts: [{ inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data: 'AQIDBA==' } }],
          },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
    });
  const base64 = picture.toString('base64');
  if (url.includes(':generateContent'))
    return json({
      candidates: [
        {
          content: { parts: [{ inlineData: { mimeType: 'image/png', data: base64 } }] },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
    });
  if (url.includes(':predict'))
    return json({ predictions: [{ bytesBase64Encoded: base64, mimeType: 'image/png' }] });
  if (url.endsWith('/v2/embed'))
    return json({
      id: 'e-1',
      embeddings: { float: listOf(body.texts).map(() => vector) },
      texts: [],
      meta: { billed_units: { input_tokens: 3 } },
    });
  if (url.endsWith('/embeddings')) {
    const { input, encoding_format: encoding } = body;
    const inputs = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input];
    const embedding =
      encoding === 'base64' ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector;
    return json({
      object: 'list',
      model: 'theirs',
      data: inputs.map((_, index) => ({ object: 'embedding', index, embedding })),
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
  }
  if (url.endsWith('/rerank')) {
    const scores = listOf(body.documents).map((_, index) => ({ index, relevance_score: 1 / (index + 1) }));
    if (url.startsWith('/voyage/'))
      return json({ object: 'list', data: scores, model: 'theirs', usage: { total_tokens: 3 } });
    return json({ id: 'r-1', results: scores, meta: { billed_units: { search_units: 1 } } });
  }
  if (url.endsWith('/moderations'))
    return json({
      id: 'modr-1',
      model: 'theirs',
      results: listOf(body.input).map(() => ({ flagged: false, categories: {}, category_scores: {} })),
    });
  if (url.includes('/audio/t')) return transcript(body, streams);
  if (url.endsWith('/audio/speech')) {
    if (body.stream_format !== 'sse') return { type: 'audio/mpeg', body: Buffer.alloc(3000, 0xfb) };
    return sse(
      { type: 'speech.audio.delta', audio: 'AQIDBAUG' },
      { type: 'speech.audio.done', usage: { input_tokens: 2, output_tokens: 9, total_tokens: 11 } },
    );
  }
  const usage = { input_tokens: 3, output_tokens: 9, total_tokens: 12 };
  if (!streams) return json({ created: 1, data: [{ b64_json: base64 }], usage });
  const kind = url.endsWith('/edits') ? 'image_edit' : 'image_generation';
  return sse({
    type: `${kind}.completed`,
    b64_json: base64,
    created_at: 1,
    size: '1024x1024',
    quality: 'auto',
    background: 'opaque',
    output_format: 'png',
    usage,
  });
}

function transcript({ response_format: format }: JsonObject, streams: boolean): Answering {
  if (streams)
    return sse(
      { type: 'transcript.text.delta', delta: 'Hello ' },
      { type: 'transcript.text.delta', delta: 'you' },
      {
        type: 'transcript.text.done',
        text: 'Hello you',
        usage: { type: 'tokens', input_tokens: 9, output_tokens: 2, total_tokens: 11 },
      },
    );
  if (format === 'text') return { type: 'text/plain; charset=utf-8', body: 'Hello you\n' };
  if (format === 'srt') return { type: 'text/plain', body: '1\n00:00:00,000 --> 00:00:02,000\nHello you\n' };
  if (format === 'vtt') return { type: 'text/vtt', body: 'WEBVTT\n\n00:00.000 --> 00:02.000\nHello you\n' };
  if (format !== 'verbose_json') return json({ text: 'Hello you', usage: { type: 'duration', seconds: 1 } });
  return json({
    task: 'transcribe',
    language: 'english',
    duration: 1.5,
    text: 'Hello you',
    segments: [{ id: 0, start: 0, end: 1.5, text: 'Hello you', tokens: [1], temperature: 0 }],
    words: [{ word: 'Hello', start: 0, end: 1 }],
    usage: { type: 'duration', seconds: 2 },
  });
}

/** Response as received over the socket. */
export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** False when the connection closed before the end of the response. */
  readonly ended: boolean;
}

const agent = new Agent({ keepAlive: true, maxSockets: 4 });

/** Posts over kept-alive connections. Rejects after ten seconds without data. */
export function post(
  { gateway }: Pick<Playground, 'gateway'>,
  path: string,
  body: Buffer | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const all = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...headers };
    const request = send(new URL(path, gateway.url), {
      method: 'POST',
      headers: all,
      agent,
      timeout: patience.wait,
    });
    request.on('timeout', () => request.destroy(new Error(`The gateway hangs at ${path}.`)));
    let answered = false;
    request.on('error', (error) => {
      if (!answered) reject(error);
    });
    request.on('response', (response: IncomingMessage) => {
      answered = true;
      const chunks: Buffer[] = [];
      response.on('error', () => {});
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('close', () => {
        const bytes = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes,
          text: bytes.toString(),
          ended: response.complete,
        });
      });
    });
    request.end(body);
  });
}

/** Closes the connections of {@link post}. */
export function hangUp(): void {
  agent.destroy();
}

/** The bytes of a form. */
export function written(parts: readonly Part[], boundary = 'x'): Buffer {
  return Buffer.concat([
    ...parts.map(({ name, value, filename, type }) => {
      const file = filename === undefined ? '' : `; filename="${filename}"`;
      const kind = type === undefined ? '' : `content-type: ${type}\r\n`;
      const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n${kind}\r\n`;
      return Buffer.concat([Buffer.from(head), Buffer.from(value), Buffer.from('\r\n')]);
    }),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
}

/** Files of uploads that this process holds open: they have no name any more, so that only their descriptors tell of them. */
export function openUploads(): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`);
      return target.includes('sluice-upload-') ? [target] : [];
    } catch {
      return [];
    }
  });
}

type Json = Record<string, unknown>;
const inner = (body: Json, name: string): Json => {
  const value = body[name];
  return value !== null && typeof value === 'object' ? (value as Json) : {};
};

/** Returns the error of a response. Throws when it violates its format. */
export function readRefusal(
  format: string,
  { status, headers, text }: Pick<Got, 'status' | 'headers' | 'text'>,
): { readonly message: string; readonly code: string; readonly param: string | undefined } {
  if (headers['content-type'] !== 'application/json')
    throw new Error(`The content type of the error is ${String(headers['content-type'])}.`);
  if (!String(headers['x-request-id']).startsWith('req_')) throw new Error('The error names no request.');
  const body = JSON.parse(text) as Json;
  const error = inner(body, 'error');
  const fail = (): never => {
    throw new Error(`Not the envelope of ${format}: ${text}`);
  };
  const given = (value: unknown): string | undefined =>
    typeof value === 'string' && value !== '' ? value : undefined;
  switch (format) {
    case 'generate-content': {
      if (error.code !== status || !/^[A-Z_]+$/.test(String(error.status))) fail();
      const details = (Array.isArray(error.details) ? error.details : []) as Json[];
      const violations = details.flatMap((one) => (one.fieldViolations ?? []) as Json[]);
      return {
        message: String(error.message),
        code: String(error.status),
        param: given(violations[0]?.field),
      };
    }
    case 'kling':
    case 'jimeng':
      if (typeof body.code !== 'number' || typeof body.message !== 'string') fail();
      return { message: String(body.message), code: String(body.code), param: undefined };
    case 'vidu':
      if (body.code !== status || typeof body.reason !== 'string' || typeof body.message !== 'string') fail();
      return {
        message: String(body.message),
        code: String(body.reason),
        param: given(inner(body, 'metadata').field),
      };
    default:
      if (typeof error.message !== 'string' || typeof error.type !== 'string' || error.code === undefined)
        fail();
      return { message: String(error.message), code: String(error.code), param: given(error.param) };
  }
}

/** Formats whose envelope has no place for the name of a field. */
export const namesNoField: ReadonlySet<string> = new Set(['kling', 'jimeng']);
