import { existsSync } from 'node:fs';
import { chatObjects, geminiObjects, messagesObjects, runs, training } from './_endpoint-objects.ts';
import {
  absent,
  aFinishedFilm,
  asMessages,
  bodies,
  fileForm,
  free,
  made,
  madeAndCharged,
  refused,
  reserved,
  type Case,
  type Table,
} from './_endpoint-rows.ts';

const question = [{ role: 'user', content: 'Hello' }];
const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
const chat = { model: 'demo', messages: question, max_tokens: 10 };
const converse = { messages: [{ role: 'user', content: [{ text: 'Hello' }] }] };
const invoked = { anthropic_version: 'bedrock-2023-05-31', messages: question, max_tokens: 10 };
const responseInput = { model: 'demo', input: 'Hello' };
const ranked = { model: 'demo', query: 'moon', documents: ['sun', 'moon'] };
const vector = { content: { parts: [{ text: 'Hello' }] } };
const film = { model: 'demo', prompt: 'the moon' };
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);
const picture = `data:image/png;base64,${png.toString('base64')}`;

/** A second of silence. */
const sound = Buffer.concat([
  Buffer.from('RIFF'),
  Buffer.from([0xa4, 0x3e, 0, 0]),
  Buffer.from('WAVEfmt '),
  Buffer.from([16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0]),
  Buffer.from('data'),
  Buffer.from([0x80, 0x3e, 0, 0]),
  Buffer.alloc(16_000),
]);
/** A second of sound as sessions that translate take it. */
const second = Buffer.alloc(48_000).toString('base64');
const recording = fileForm({ model: 'demo' }, sound, 'a.wav');

function imageForm(fields: Readonly<Record<string, string>>): () => FormData {
  return () => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    form.set('image', new Blob([new Uint8Array(png)], { type: 'image/png' }), 'a.png');
    return form;
  };
}

const counts = 'counting runs no model';
const lists = 'lists what the configuration says';
const unitless = { isUnitless: true };

/** Rows of a method of generateContent, whose models have two folders in two versions. */
function geminiMethods(rows: Readonly<Record<string, Case>>): Table {
  const folders = ['/v1beta/models', '/v1/models', '/v1beta/tunedModels', '/v1/tunedModels'];
  return Object.fromEntries(
    Object.entries(rows).flatMap(([verb, row]) =>
      folders.map((folder) => [`POST ${folder}/*model\\:${verb}`, [row]] as const),
    ),
  );
}

/** The operations of models. */
const operations: Table = {
  'POST /v1/chat/completions': [reserved(chat)],
  'POST /v1/completions': [reserved({ model: 'demo', prompt: 'Hello', max_tokens: 10 })],
  'POST /v1/messages': [reserved(chat, { headers: asMessages })],
  'POST /v1/messages/count_tokens': [free(counts, { body: chat, headers: asMessages })],
  'POST /v1/responses': [
    reserved(responseInput),
    reserved({ ...responseInput, background: true }, { use: 'in the background', isRefusedLater: true }),
  ],
  'POST /v1/responses/input_tokens': [free(counts, { body: responseInput })],
  'POST /v1/responses/compact': [reserved(responseInput)],
  'WS /v1/responses': [reserved({ type: 'response.create', ...responseInput })],
  'GET /v1/responses': [free('only a WebSocket opens there', { status: 426 })],
  'WS /v1/realtime': [reserved({ type: 'response.create' }, { query: '?model=demo' })],
  'GET /v1/realtime': [free('only a WebSocket opens there', { status: 426 })],
  'WS /v1/realtime/translations': [
    reserved({ type: 'session.input_audio_buffer.append', audio: second }, { query: '?model=demo' }),
  ],
  'GET /v1/realtime/translations': [free('only a WebSocket opens there', { status: 426 })],
  'POST /model/*model/converse': [reserved(converse)],
  'POST /model/*model/converse-stream': [reserved(converse)],
  'POST /model/*model/count-tokens': [free(counts, { body: { input: { converse } } })],
  'POST /model/*model/invoke': [reserved(invoked)],
  'POST /model/*model/invoke-with-response-stream': [reserved(invoked)],
  ...geminiMethods({
    generateContent: reserved({ contents }),
    streamGenerateContent: reserved({ contents }),
    countTokens: free(counts, { body: { contents } }),
    predictLongRunning: reserved({ instances: [{ prompt: 'the moon' }] }, unitless),
    embedContent: reserved(vector),
    batchEmbedContents: reserved({ requests: [{ model: 'models/demo', ...vector }] }),
    predict: reserved({ instances: [{ content: 'Hello' }] }),
  }),
  'POST /v1/embeddings': [reserved(responseInput)],
  'POST /v1/moderations': [
    // The demo reports no tokens of moderations, as OpenAI does not.
    reserved({ ...responseInput, model: 'per-call' }, unitless),
  ],
  'POST /v1/ocr': [
    // Pages have no tokens.
    reserved({ model: 'per-call', document: { type: 'image_url', image_url: picture } }, unitless),
    reserved(
      { model: 'per-call', document: { document_url: picture }, pages: '0-4' },
      { use: 'of some pages', ...unitless },
    ),
  ],
  'POST /v1/rerank': [reserved(ranked)],
  'POST /v2/rerank': [reserved(ranked)],
  'POST /rerank': [
    reserved(ranked),
    reserved(
      {
        queries: [{ type: 'TEXT', textQuery: { text: 'moon' } }],
        sources: [
          {
            type: 'INLINE',
            inlineDocumentSource: { type: 'TEXT', textDocument: { text: 'sun' } },
          },
        ],
        rerankingConfiguration: {
          type: 'BEDROCK_RERANKING_MODEL',
          bedrockRerankingConfiguration: { modelConfiguration: { modelArn: 'demo' } },
        },
      },
      { use: 'signed', headers: { 'amz-sdk-invocation-id': 'i' } },
    ),
  ],
  'POST /v1/images/generations': [reserved(film, unitless)],
  'POST /v1/images/edits': [reserved(imageForm(film), unitless)],
  'POST /v1/images/variations': [reserved(imageForm({ model: 'demo' }), unitless)],
  'POST /v1/audio/transcriptions': [reserved(recording)],
  'POST /v1/audio/translations': [reserved(recording)],
  'POST /v1/audio/speech': [reserved({ ...responseInput, voice: 'alloy' }, unitless)],
  'GET /v1/models': [free(lists)],
  'GET /v1/models/*model': [free(lists)],
  'GET /v1beta/models': [free(lists)],
  'GET /v1beta/models/*model': [free(lists)],
  'GET /foundation-models': [free(lists)],
  'GET /foundation-models/*model': [free(lists)],
  'GET /inference-profiles': [free(lists)],
  'GET /inference-profiles/*model': [free(lists)],
};

const task = 'asks after a task that was charged when it was taken';
const aFilm = made('/v1/videos', film);
const kling = { model_name: 'demo', prompt: 'the moon' };
const jimeng = { req_key: 'jimeng_v30', prompt: 'the moon' };

/** Videos, in every format that has them. */
const videos: Table = {
  'POST /v1/videos': [reserved(film, unitless)],
  'POST /v1/videos/:id/remix': [reserved({ prompt: 'the sun' }, { ...unitless, make: aFinishedFilm })],
  'POST /v1/video/generations': [reserved(film, unitless)],
  'POST /api/v3/contents/generations/tasks': [
    reserved({ model: 'demo', content: [{ type: 'text', text: 'the moon' }] }, unitless),
  ],
  'POST /kling/v1/videos/text2video': [reserved(kling, unitless)],
  'POST /kling/v1/videos/image2video': [reserved({ ...kling, image: picture }, unitless)],
  'POST /ent/v2/text2video': [reserved(film, unitless)],
  'POST /ent/v2/img2video': [reserved({ ...film, images: [picture] }, unitless)],
  'POST /ent/v2/start-end2video': [
    reserved({ ...film, model: 'viduq2', images: [picture, picture] }, unitless),
  ],
  'POST /ent/v2/reference2video': [reserved({ ...film, images: [picture] }, unitless)],
  'POST /jimeng': [
    reserved(jimeng, { ...unitless, query: '?Action=CVSync2AsyncSubmitTask&Version=2022-08-31' }),
    free(task, {
      use: 'result',
      make: aFilm,
      query: '?Action=CVSync2AsyncGetResult',
      bodyOf: (id) => ({ req_key: 'jimeng_v30', task_id: id }),
    }),
  ],
  'GET /v1/videos': [free(task)],
  'GET /v1/videos/:id': [free(task, { make: aFilm })],
  'GET /v1/videos/:id/content': [free(task, { make: aFilm, status: 400 })],
  'DELETE /v1/videos/:id': [free(task, { make: aFilm })],
  'GET /v1/video/generations/:id': [free(task, { make: aFilm })],
  'GET /api/v3/contents/generations/tasks': [free(task)],
  'GET /api/v3/contents/generations/tasks/:id': [free(task, { make: aFilm })],
  'DELETE /api/v3/contents/generations/tasks/:id': [free(task, { make: aFilm })],
  'GET /kling/v1/videos/text2video': [free(task)],
  'GET /kling/v1/videos/image2video': [free(task)],
  'GET /kling/v1/videos/text2video/:id': [free(task, { make: aFilm })],
  'GET /kling/v1/videos/image2video/:id': [free(task, { make: aFilm })],
  'GET /ent/v2/tasks/:id/creations': [free(task, { make: aFilm })],
  'POST /ent/v2/tasks/:id/cancel': [free(task, { make: aFilm })],
  'GET /v1/operations/:id': [free(task, { make: aFilm })],
  'GET /v1beta/operations/:id': [free(task, { make: aFilm })],
};

const here = 'the gateway keeps it, and no provider is asked';
const aResponse = madeAndCharged('/v1/responses', { ...responseInput, store: true });
const aConversation = made('/v1/conversations', {});

/** Responses and conversations, which the gateway keeps by itself. */
const responses: Table = {
  'GET /v1/responses/:id': [free(here, { make: aResponse })],
  'DELETE /v1/responses/:id': [free(here, { make: aResponse })],
  'POST /v1/responses/:id/cancel': [
    free(here, { make: madeAndCharged('/v1/responses', { ...responseInput, background: true }) }),
  ],
  'GET /v1/responses/:id/input_items': [free(here, { make: aResponse })],
  'POST /v1/conversations': [free(here, { body: {} })],
  'GET /v1/conversations/:id': [free(here, { make: aConversation })],
  'POST /v1/conversations/:id': [free(here, { make: aConversation, body: { metadata: {} } })],
  'DELETE /v1/conversations/:id': [free(here, { make: aConversation })],
  'POST /v1/conversations/:id/items': [
    free(here, {
      make: aConversation,
      body: { items: [{ type: 'message', role: 'user', content: 'Hello' }] },
    }),
  ],
  'GET /v1/conversations/:id/items': [free(here, { make: aConversation })],
  'GET /v1/conversations/:id/items/:item': [free(here, { make: aConversation, status: 404 })],
  'DELETE /v1/conversations/:id/items/:item': [free(here, { make: aConversation, status: 404 })],
};

const dashboardStatus = existsSync(new URL('../../plugins/dashboard/dist/', import.meta.url)) ? 200 : 503;
const operator = 'the admin session is needed, not an API key';
const admin = (method: string, ...paths: readonly string[]): Table =>
  Object.fromEntries(
    paths.map((path) => [
      `${method} /api/admin${path}`,
      // Without the API key: wrong tokens are counted by address, and so many routes would be refused for that alone.
      [free(operator, { status: path.includes('rest') ? 404 : 401, headers: { authorization: '' } })],
    ]),
  );

/** Routes of whoever runs the gateway. */
const operating: Table = {
  'GET /healthz': [free('says that the gateway runs')],
  'GET /readyz': [free('says that the gateway is ready')],
  'GET /metrics': [free('counts calls')],
  // 503 where the page has not been built.
  'GET /dashboard{/*path}': [free('serves the page', { status: dashboardStatus })],
  ...admin('GET', '/session', '/overview', '/live', '/keys', '/keys/:id', '/usage', '/usage/sums'),
  ...admin('GET', '/usage.csv', '/usage/:id', '/channels', '/models', '/status', '/audit'),
  'GET /api/admin/openapi.json': [free('describes the admin API')],
  ...admin('GET', '{/*rest}'),
  'POST /api/admin/login': [free(operator, { body: { password: 'wrong' }, status: 401 })],
  ...admin('POST', '/logout', '/keys', '/keys/:id/rotate', '/keys/:id/enable'),
  ...admin('POST', '/keys/:id/disable', '/channels/:id/test', '/channels/:id/enable'),
  ...admin('POST', '/channels/:id/disable', '/channels/:id/reset', '/reload', '{/*rest}'),
  ...admin('GET', '/owners', '/owners/:id', '/tokens', '/users', '/users/:id', '/me', '/me/sessions'),
  ...admin('POST', '/keys/bulk', '/owners', '/tokens', '/users', '/users/:id/invitation', '/me/password'),
  ...admin('POST', '/me/second-factor', '/me/second-factor/confirm', '/me/second-factor/remove'),
  ...admin('PATCH', '/keys/:id', '/owners/:id', '/users/:id', '/me', '{/*rest}'),
  ...admin('DELETE', '/keys/:id', '/keys/:id/old-secret', '/owners/:id', '/tokens/:id', '/users/:id'),
  ...admin('DELETE', '/users/:id/second-factor', '/me/sessions', '/me/sessions/:id', '{/*rest}'),
  ...admin('GET', '/config', '/config/channel-types', '/config/channel-types/:id', '/config/history'),
  ...admin('GET', '/config/entries/:id', '/config/plugin-options'),
  ...admin('POST', '/config', '/config/order', '/config/test', '/config/history/:id/undo'),
  ...admin('POST', '/config/entries/:id/enable', '/config/entries/:id/disable'),
  ...admin('PATCH', '/config/entries/:id'),
  ...admin('DELETE', '/config/entries/:id'),
  'GET /api/admin/sign-in': [free('tells the ways to sign in')],
  'POST /api/admin/sign-in': [
    free(operator, { body: { email: 'ada@example.com', password: 'wrong' }, status: 401 }),
  ],
  'POST /api/admin/invitation': [
    free('sets a password', { body: { token: 'unknown', password: 'wrong' }, status: 404 }),
  ],
  ...admin('PUT', '{/*rest}'),
};

const project = '/projects/p/locations/global';
const post = (path: string): { readonly path: string } => ({ path });

/** Addresses of clouds, which lead to the routes above. */
const aliases: Table = {
  'ALIAS chat-completions /openai/': [
    reserved(chat, { use: 'deployment', ...post('/openai/deployments/demo/chat/completions') }),
    reserved(chat, { use: 'v1', ...post('/openai/v1/chat/completions') }),
    refused(runs, { use: 'evals', body: bodies.eval, ...post('/openai/v1/evals') }),
    refused(training, { use: 'fine-tuning', body: bodies.job, ...post('/openai/fine_tuning/jobs') }),
  ],
  'ALIAS chat-completions /v1/projects/': [
    reserved(chat, post(`/v1${project}/endpoints/openapi/chat/completions`)),
    refused(runs, { use: 'evals', body: bodies.eval, ...post(`/v1${project}/endpoints/openapi/evals`) }),
  ],
  'ALIAS chat-completions /v1beta1/projects/': [
    reserved(chat, post(`/v1beta1${project}/endpoints/openapi/chat/completions`)),
  ],
  'ALIAS generate-content /v1/projects/': [
    reserved({ contents }, post(`/v1${project}/publishers/google/models/demo:generateContent`)),
  ],
  'ALIAS generate-content /v1/publishers/': [
    reserved({ contents }, post('/v1/publishers/google/models/demo:generateContent')),
  ],
  'ALIAS generate-content /v1beta1/': [
    reserved({ contents }, post('/v1beta1/publishers/google/models/demo:generateContent')),
  ],
  'ALIAS messages /v1/projects/': [
    reserved(invoked, post(`/v1${project}/publishers/anthropic/models/demo:rawPredict`)),
  ],
  'ALIAS messages /v1beta1/projects/': [
    reserved(invoked, post(`/v1beta1${project}/publishers/anthropic/models/demo:streamRawPredict`)),
  ],
};

/** Every route of the gateway, with how each of its uses stands to a budget. */
export const table: Table = {
  ...operations,
  ...videos,
  ...responses,
  ...chatObjects,
  ...messagesObjects,
  ...geminiObjects,
  ...operating,
  ...aliases,
};

/** Paths by which providers start work that costs something, and that are not served here. */
export const unserved: Readonly<Record<string, Case>> = Object.fromEntries(
  [
    'POST /v1/fine_tuning/alpha/graders/run',
    'POST /v1/fine_tuning/alpha/graders/validate',
    'POST /v1/fine_tuning/checkpoints/ft-1/permissions',
    'POST /v1/graders/run',
    'POST /v1/skills',
    'POST /v1/assistants',
    'POST /v1/threads',
    'POST /v1/threads/runs',
    'POST /v1/realtime/client_secrets',
    'POST /v1/realtime/sessions',
    'POST /v1/realtime/calls',
    'POST /v1/realtime/translations/calls',
    'POST /v1/realtime/translations/client_secrets',
    'POST /v1/live/sessions',
    'POST /v1/agents',
    'POST /v1/libraries',
    'POST /v1beta/tunedModels',
    'POST /v1beta/corpora',
    'POST /v1beta/interactions',
    'POST /model-customization-jobs',
    'POST /model-invocation-job',
    'POST /v1/projects/p/locations/global/tuningJobs',
    'POST /v1/projects/p/locations/global/batchPredictionJobs',
    'POST /v1beta1/projects/p/locations/global/cachedContents',
    'POST /openai/v1/fine_tuning/alpha/graders/run',
  ].map((route) => [route, absent({ body: {}, status: 404 })]),
);
