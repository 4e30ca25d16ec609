import { startObjectServer, type Json, type ObjectServer } from './object-server.ts';

/** A provider on a free port that keeps files, caches and batches in memory, as the reference of the Gemini API describes them. */
export interface GeminiObjects extends ObjectServer {
  readonly batches: Map<string, Json>;
  /** Ends a batch: with these answers in its description, or in a file. */
  finish(id: string, answers: readonly Json[], where: 'inline' | 'file'): void;
}

/** Starts one. */
export async function startGeminiObjects(): Promise<GeminiObjects> {
  const files = new Map<string, { readonly object: Json; readonly content: Buffer }>();
  const uploads = new Map<string, { readonly about: Json; readonly pieces: Buffer[] }>();
  const caches = new Map<string, Json>();
  const stores = new Map<string, Json>();
  const batches = new Map<string, Json>();
  let count = 0;
  const newId = (): string => `x${(count += 1)}-id`;
  const fileOf = (about: Json, content: Buffer): Json => {
    const name = typeof about['name'] === 'string' ? about['name'] : `files/${newId()}`;
    const uri = `https://generativelanguage.googleapis.com/v1beta/${name}`;
    const object = {
      name,
      uri,
      mimeType: about['mimeType'],
      sizeBytes: String(content.length),
      state: 'ACTIVE',
    };
    files.set(name.replace('files/', ''), { object, content });
    return object;
  };
  const server = await startObjectServer((request, answer) => {
    const { method, path, query, headers } = request;
    const json = (): Json => (request.body.length === 0 ? {} : (JSON.parse(request.body.toString()) as Json));
    const missing = (): void =>
      answer(404, { error: { code: 404, message: 'Not found', status: 'NOT_FOUND' } });
    const time = Date.now();
    const command = String(headers['x-goog-upload-command'] ?? '');
    const [, into] =
      /^\/upload\/v1beta\/fileSearchStores\/([\w-]+):uploadToFileSearchStore$/.exec(path) ?? [];
    if (into !== undefined && !stores.has(into)) return missing();
    const isUpload = path === '/upload/v1beta/files' || into !== undefined;
    if (isUpload && command === 'start') {
      const id = newId();
      uploads.set(id, { about: (json()['file'] ?? json()) as Json, pieces: [] });
      answer(200, '', {
        'x-goog-upload-status': 'active',
        'x-goog-upload-url': `${server.url}${path}?upload_id=${id}&upload_protocol=resumable`,
      });
      return;
    }
    if (isUpload) {
      const upload = uploads.get(query.get('upload_id') ?? '');
      if (upload === undefined) return missing();
      const received = upload.pieces.reduce((length, piece) => length + piece.length, 0);
      if (headers['x-goog-upload-offset'] !== String(received))
        return answer(400, { error: { code: 400, message: 'Wrong offset', status: 'INVALID_ARGUMENT' } });
      upload.pieces.push(request.body);
      if (!command.includes('finalize')) return answer(200, {}, { 'x-goog-upload-status': 'active' });
      if (into !== undefined)
        return answer(
          200,
          { name: `fileSearchStores/${into}/upload/operations/o-1`, done: true, response: { parent: into } },
          { 'x-goog-upload-status': 'final' },
        );
      return answer(
        200,
        { file: fileOf(upload.about, Buffer.concat(upload.pieces)) },
        { 'x-goog-upload-status': 'final' },
      );
    }
    const [, , name = '', rest = ''] = path.split('/');
    const [id = '', action] = decodeURIComponent(rest).split(':');
    if (name === 'files') {
      const file = files.get(id);
      if (file === undefined) return missing();
      if (action === 'download') return answer(200, file.content);
      if (method === 'DELETE') files.delete(id);
      return answer(200, method === 'DELETE' ? {} : file.object);
    }
    if (name === 'fileSearchStores' && method === 'POST' && rest === '') {
      const store = { name: `fileSearchStores/${newId()}`, ...json() };
      stores.set(store.name.replace('fileSearchStores/', ''), store);
      return answer(200, store);
    }
    if (name === 'fileSearchStores') {
      const store = stores.get(id);
      if (store === undefined) return missing();
      if (action === 'importFile')
        return answer(200, { name: `fileSearchStores/${id}/operations/o-1`, done: false });
      if (path.endsWith('/documents')) return answer(200, { documents: [{ name: `${path.slice(8)}/d-1` }] });
      if (path.includes('/operations/')) return answer(200, { name: path.slice(8), done: true });
      if (method === 'DELETE') stores.delete(id);
      return answer(200, method === 'DELETE' ? {} : store);
    }
    if (name === 'cachedContents' && method === 'POST') {
      const { ttl = '3600s' } = json();
      const cache = {
        name: `cachedContents/${newId()}`,
        ...json(),
        createTime: new Date(time).toISOString(),
        expireTime: new Date(time + parseFloat(String(ttl)) * 1000).toISOString(),
        usageMetadata: { totalTokenCount: Math.floor(request.body.length / 4) },
      };
      caches.set(cache.name.replace('cachedContents/', ''), cache);
      return answer(200, cache);
    }
    if (name === 'cachedContents') {
      const cache = caches.get(id);
      if (cache === undefined) return missing();
      if (method === 'DELETE') caches.delete(id);
      if (method === 'PATCH') {
        const { ttl = '0s' } = json();
        const expireTime = new Date(time + parseFloat(String(ttl)) * 1000).toISOString();
        Object.assign(cache, json(), { expireTime });
      }
      return answer(200, method === 'DELETE' ? {} : cache);
    }
    if (action === 'batchGenerateContent' || action === 'asyncBatchEmbedContent') {
      const batch: Json = {
        name: `batches/${newId()}`,
        metadata: {
          model: `models/${id}`,
          displayName: 'd',
          state: 'BATCH_STATE_PENDING',
          createTime: '2026-01-01T00:00:00Z',
        },
        asked: json(),
      };
      batches.set(String(batch['name']).replace('batches/', ''), batch);
      return answer(200, batch);
    }
    if (name === 'batches') {
      const batch = batches.get(id);
      if (batch === undefined) return missing();
      if (action === 'cancel') return answer(200, {});
      if (method === 'DELETE') batches.delete(id);
      return answer(200, method === 'DELETE' ? {} : batch);
    }
    if (action === 'generateContent')
      return answer(200, {
        candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: {
          promptTokenCount: json()['cachedContent'] === undefined ? 3 : 1003,
          ...(json()['cachedContent'] === undefined ? {} : { cachedContentTokenCount: 1000 }),
          candidatesTokenCount: 2,
          totalTokenCount: 5,
        },
      });
    return missing();
  });
  return Object.assign(server, {
    batches,
    finish(id: string, answers: readonly Json[], where: 'inline' | 'file') {
      const batch = batches.get(id);
      if (batch === undefined) throw new Error(`There is no batch ${id}.`);
      const lines = answers.map((one) => JSON.stringify(one)).join('\n');
      const output =
        where === 'inline'
          ? { inlinedResponses: { inlinedResponses: answers } }
          : { responsesFile: String(fileOf({}, Buffer.from(lines))['name']) };
      batch['done'] = true;
      batch['response'] = output;
      Object.assign(batch['metadata'] as Json, {
        state: 'BATCH_STATE_SUCCEEDED',
        endTime: '2026-01-01T01:00:00Z',
        output,
      });
    },
  });
}
