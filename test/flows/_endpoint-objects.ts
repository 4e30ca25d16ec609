import {
  absent,
  aBatch,
  aCache,
  aFile,
  aGeminiBatch,
  aGeminiFile,
  aMessageBatch,
  aMessagesFile,
  asGemini,
  asMessages,
  aSearchStore,
  bodies,
  cached,
  fileBatch,
  fileForm,
  free,
  geminiRequests,
  made,
  messageRequests,
  refused,
  reserved,
  settleGemini,
  settleMessages,
  type Case,
  type Make,
  type Table,
} from './_endpoint-rows.ts';

const vector = { content: { parts: [{ text: 'Hello' }] } };
const unitless = { isUnitless: true };

const shows = 'shows what is kept';
const removes = 'ends storage';
const cancels = 'ends work';

/** Rows of what objects of one collection have alike. */
function shown(path: string, make: Make, more: Partial<Case> = {}): Table {
  return {
    [`GET ${path}`]: [free(shows, more)],
    [`GET ${path}/:id`]: [free(shows, { make, ...more })],
  };
}

function removed(path: string, make: Make, more: Partial<Case> = {}): Table {
  return { [`DELETE ${path}/:id`]: [free(removes, { make, ...more })] };
}

function below(path: string, make: Make, rest: string, { get = 200, remove = 200 } = {}): Table {
  return {
    [`GET ${path}/:id/*rest`]: [free(shows, { make, rest, status: get })],
    [`DELETE ${path}/:id/*rest`]: [free(removes, { make, rest, status: remove })],
  };
}

const storage = 'storage by size and day has no price in advance';
export const training = 'the length of training is not known in advance';
export const runs = 'graders and models run as often as the data has items';
const session = 'a container is charged by session and size';
const indexing = 'indexing is charged by tokens, which nobody has counted';

const aStore = made('/v1/vector_stores', bodies.store);
const aContainer = made('/v1/containers', bodies.container);
const anEval = made('/v1/evals', bodies.eval);
const aJob = made('/v1/fine_tuning/jobs', bodies.job);
const anUpload = made('/v1/uploads', bodies.upload);
const messages = { headers: asMessages };
const ofMessages = { use: 'of messages', ...messages };
const ofGemini = { use: 'of generateContent', headers: asGemini };
const noneHere = absent({ ...ofGemini, make: aGeminiFile, status: 404 });
const noBatch = absent({ ...ofGemini, make: aGeminiBatch, rest: 'cancel', status: 404 });

/** Objects that providers of the OpenAI family store. */
export const chatObjects: Table = {
  'POST /v1/files': [
    free('files are kept for nothing', { body: fileForm() }),
    free('files are kept for nothing', { ...ofMessages, body: fileForm({}, 'text', 'f.txt') }),
    noneHere,
  ],
  'GET /v1/files': [free(shows), free(shows, ofMessages), free(shows, ofGemini)],
  'GET /v1/files/:id': [
    free(shows, { make: aFile }),
    free(shows, { ...ofMessages, make: aMessagesFile }),
    free(shows, { ...ofGemini, make: aGeminiFile }),
  ],
  'DELETE /v1/files/:id': [
    free(removes, { make: aFile }),
    free(removes, { ...ofMessages, make: aMessagesFile }),
    free(removes, { ...ofGemini, make: aGeminiFile }),
  ],
  'GET /v1/files/:id/*rest': [
    free(shows, { make: aFile, rest: 'content' }),
    free(shows, { ...ofMessages, make: aMessagesFile, rest: 'content' }),
    noneHere,
  ],
  'POST /v1/files/:id/*rest': [
    refused('no such request is known to be free', { make: aFile, rest: 'index' }),
    refused('no such request is known to be free', { ...ofMessages, make: aMessagesFile, rest: 'index' }),
    noneHere,
  ],
  'DELETE /v1/files/:id/*rest': [
    free(removes, { make: aFile, rest: 'x' }),
    free(removes, { ...ofMessages, make: aMessagesFile, rest: 'x' }),
    noneHere,
  ],
  'POST /v1/uploads': [free('an upload becomes a file', { body: bodies.upload })],
  'POST /v1/uploads/:id/*rest': [
    free('an upload becomes a file', { use: 'part', make: anUpload, rest: 'parts', body: fileForm() }),
    free('an upload becomes a file', {
      use: 'completion',
      make: anUpload,
      rest: 'complete',
      body: { part_ids: [] },
    }),
    free(cancels, { use: 'cancellation', make: anUpload, rest: 'cancel' }),
    refused('no other request is known to be free', { use: 'else', make: anUpload, rest: 'start' }),
  ],
  ...below('/v1/uploads', anUpload, 'parts'),
  'POST /v1/batches': [reserved(undefined, fileBatch), noBatch],
  'GET /v1/batches': [free(shows), free(shows, ofGemini)],
  'GET /v1/batches/:id': [free(shows, { make: aBatch }), free(shows, { ...ofGemini, make: aGeminiBatch })],
  'DELETE /v1/batches/:id': [
    absent({ make: aBatch, status: 404 }),
    free('a batch that runs is not deleted', { ...ofGemini, make: aGeminiBatch, status: 409 }),
  ],
  'POST /v1/batches/:id\\:cancel': [
    absent({ make: aBatch, status: 404 }),
    free(cancels, { ...ofGemini, make: aGeminiBatch }),
  ],
  'POST /v1/batches/:id/*rest': [
    free(cancels, { use: 'cancellation', make: aBatch, rest: 'cancel' }),
    refused('no other request is known to be free', { use: 'else', make: aBatch, rest: 'resume' }),
    noBatch,
  ],
  'GET /v1/batches/:id/*rest': [
    free('results are there when they are charged', { make: aBatch, rest: 'x', status: 404 }),
    noBatch,
  ],
  'DELETE /v1/batches/:id/*rest': [free(removes, { make: aBatch, rest: 'x' }), noBatch],
  'POST /v1/fine_tuning/jobs': [refused(training, { body: bodies.job })],
  ...shown('/v1/fine_tuning/jobs', aJob),
  'POST /v1/fine_tuning/jobs/:id/*rest': [
    free(cancels, { use: 'cancellation', make: aJob, rest: 'cancel' }),
    free(cancels, { use: 'pause', make: aJob, rest: 'pause' }),
    refused(training, { use: 'resumption', make: aJob, rest: 'resume' }),
  ],
  ...below('/v1/fine_tuning/jobs', aJob, 'events'),
  'POST /v1/vector_stores': [refused(storage, { body: bodies.store })],
  ...shown('/v1/vector_stores', aStore),
  'POST /v1/vector_stores/:id': [
    free('a name costs nothing', { use: 'name', make: aStore, body: { name: 'x' } }),
    refused(storage, {
      use: 'expiry',
      make: aStore,
      body: { expires_after: { anchor: 'last_active_at', days: 9 } },
    }),
  ],
  ...removed('/v1/vector_stores', aStore),
  'POST /v1/vector_stores/:id/*rest': [
    refused(storage, { use: 'file', make: aStore, rest: 'files', body: {} }),
    refused(storage, { use: 'files', make: aStore, rest: 'file_batches', body: {} }),
    refused('the price of searches is not known', { use: 'search', make: aStore, rest: 'search', body: {} }),
    free(cancels, { use: 'cancellation', make: aStore, rest: 'file_batches/b/cancel' }),
  ],
  ...below('/v1/vector_stores', aStore, 'files'),
  'POST /v1/containers': [refused(session, { body: bodies.container })],
  ...shown('/v1/containers', aContainer),
  ...removed('/v1/containers', aContainer),
  'POST /v1/containers/:id/*rest': [
    refused(session, { use: 'upload', make: aContainer, rest: 'files', body: fileForm() }),
    refused(session, { use: 'file', make: aContainer, rest: 'files', body: {} }),
  ],
  ...below('/v1/containers', aContainer, 'files'),
  'POST /v1/evals': [refused(runs, { body: bodies.eval })],
  ...shown('/v1/evals', anEval),
  'POST /v1/evals/:id': [
    free('a name costs nothing', { use: 'name', make: anEval, body: { name: 'x' } }),
    refused(runs, { use: 'graders', make: anEval, body: { testing_criteria: [] } }),
  ],
  ...removed('/v1/evals', anEval),
  'POST /v1/evals/:id/*rest': [
    refused(runs, { use: 'run', make: anEval, rest: 'runs', body: {} }),
    refused(runs, { use: 'resumption', make: anEval, rest: 'runs/run_1/resume' }),
    free(cancels, { use: 'cancellation', make: anEval, rest: 'runs/run_1/cancel' }),
  ],
  ...below('/v1/evals', anEval, 'runs'),
};

/** Objects that Anthropic stores. */
export const messagesObjects: Table = {
  'POST /v1/messages/batches': [reserved(messageRequests, { ...messages, settle: settleMessages })],
  ...shown('/v1/messages/batches', aMessageBatch, messages),
  'DELETE /v1/messages/batches/:id': [
    free('a batch that runs is not deleted', { make: aMessageBatch, status: 409, ...messages }),
  ],
  'POST /v1/messages/batches/:id/*rest': [
    free(cancels, { use: 'cancellation', make: aMessageBatch, rest: 'cancel', ...messages }),
    refused('no other request is known to be free', {
      use: 'else',
      make: aMessageBatch,
      rest: 'resume',
      ...messages,
    }),
  ],
  ...below('/v1/messages/batches', aMessageBatch, 'results', { get: 404 }),
};

const begins = { 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' };
const about = { file: { mimeType: 'text/plain' } };
const cacheBody = { body: { ttl: '7200s' }, make: aCache };

/** Objects that Gemini stores, in one version of its API. */
function geminiVersion(version: 'v1' | 'v1beta'): Table {
  const stores = `/${version}/fileSearchStores`;
  const caches = `/${version}/cachedContents`;
  const batch = reserved(geminiRequests, { model: 'gemini-a', settle: settleGemini });
  return {
    [`POST /${version}/models/*model\\:batchGenerateContent`]: [batch],
    [`POST /${version}/models/*model\\:asyncBatchEmbedContent`]: [
      reserved(
        { batch: { inputConfig: { requests: { requests: [{ request: vector }] } } } },
        { model: 'gemini-a', settle: settleGemini },
      ),
    ],
    [`POST /upload/${version}/files`]: [free('files are kept for nothing', { body: about, headers: begins })],
    [`POST /upload/${version}/fileSearchStores/:store\\:uploadToFileSearchStore`]: [
      refused(indexing, { make: aSearchStore, body: {}, headers: begins }),
    ],
    [`GET /${version}/files/:id\\:download`]: [free(shows, { make: aGeminiFile })],
    [`GET /download/${version}/files/:id\\:download`]: [free(shows, { make: aGeminiFile })],
    [`POST ${caches}`]: [
      reserved(cached, unitless),
      refused('a budget in tokens does not limit storage', { use: 'in tokens', body: cached }),
    ],
    ...shown(caches, aCache),
    [`PATCH ${caches}/:id`]: [reserved(cacheBody.body, { make: aCache, ...unitless })],
    ...removed(caches, aCache),
    [`POST ${stores}`]: [free('only indexing is charged', { body: {} })],
    ...shown(stores, aSearchStore),
    ...removed(stores, aSearchStore),
    [`POST ${stores}/:id\\:importFile`]: [refused(indexing, { make: aSearchStore, body: {} })],
    [`POST ${stores}/:id/*rest`]: [
      refused('no such request is known to be free', { make: aSearchStore, rest: 'documents', body: {} }),
    ],
    ...below(stores, aSearchStore, 'documents'),
  };
}

/** Objects that Gemini stores. */
export const geminiObjects: Table = {
  ...geminiVersion('v1beta'),
  ...geminiVersion('v1'),
  ...shown('/v1beta/files', aGeminiFile),
  ...removed('/v1beta/files', aGeminiFile),
  ...shown('/v1beta/batches', aGeminiBatch),
  'POST /v1beta/batches/:id\\:cancel': [free(cancels, { make: aGeminiBatch })],
  'DELETE /v1beta/batches/:id': [
    free('a batch that runs is not deleted', { make: aGeminiBatch, status: 409 }),
  ],
};
