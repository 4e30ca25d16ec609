import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Json = Record<string, unknown>;

/** Fields of a request to a provider that tests read. */
export interface ObjectRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** Bytes of the body that have come so far. */
  received: number;
  /** True when its connection broke before all of it had come. */
  cut: boolean;
}

/** A provider on a free port that keeps objects in memory as OpenAI's API reference describes them. */
export interface OpenaiObjects {
  readonly url: string;
  readonly requests: ObjectRequest[];
  readonly files: Map<string, { readonly object: Json; readonly content: Buffer }>;
  readonly batches: Map<string, Json>;
  /** Ends a batch: each line of its input is answered by `reply`, or fails where that gives nothing. */
  finish(id: string, reply: (line: Json) => Json | undefined): void;
  /** Answers everything with this until it is taken back. */
  failWith: { readonly status: number; readonly body: Json } | undefined;
  /** Answers wait for this. */
  delays: Promise<void> | undefined;
  /** Requests for such paths are never answered. */
  holds: ((path: string) => boolean) | undefined;
  close(): Promise<void>;
}

/** Starts one. `prefix` stands in its ids, so that those of two providers differ; `root` before all its paths. */
export async function startOpenaiObjects(prefix = 'a', root = ''): Promise<OpenaiObjects> {
  const requests: ObjectRequest[] = [];
  const files: OpenaiObjects['files'] = new Map();
  const batches: OpenaiObjects['batches'] = new Map();
  const others = new Map<string, Json>();
  const parts = new Map<string, Buffer>();
  let count = 0;
  const newId = (kind: string): string => `${kind}${prefix}${(count += 1)}`;
  const addFile = (filename: string, purpose: string, content: Buffer): Json => {
    const object = {
      id: newId('file-'),
      object: 'file',
      bytes: content.length,
      created_at: 1_700_000_000 + count,
      filename,
      purpose,
      status: 'processed',
    };
    files.set(object.id, { object, content });
    return object;
  };

  const handle = (seen: ObjectRequest, body: Buffer, response: ServerResponse): void => {
    const send = (status: number, value: unknown): void => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      response.writeHead(status, {
        'content-type': typeof value === 'string' ? 'text/html' : 'application/json',
        'openai-organization': 'the-operators-account',
      });
      response.end(text);
    };
    const missing = (what: string): void =>
      send(404, {
        error: { message: `No such ${what} object`, type: 'invalid_request_error', param: 'id', code: null },
      });
    if (provider.holds?.(seen.path) === true) return;
    if (provider.failWith !== undefined) {
      send(provider.failWith.status, provider.failWith.body);
      return;
    }
    const [, , name = '', id = '', ...rest] = seen.path.split('/');
    const under = rest.join('/');
    if (seen.path === '/v1/chat/completions') {
      const { model } = JSON.parse(body.toString()) as Json;
      send(200, {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model,
        choices: [
          { index: 0, message: { role: 'assistant', content: `by ${prefix}` }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      });
    } else if (name === 'files' && seen.method === 'POST') {
      const form = readForm(seen.headers['content-type'] ?? '', body);
      const file = form.find((part) => part.filename !== undefined);
      const purpose = form.find((part) => part.name === 'purpose')?.content.toString() ?? '';
      send(200, addFile(file?.filename ?? '', purpose, file?.content ?? Buffer.alloc(0)));
    } else if (name === 'files') {
      const file = files.get(id);
      if (file === undefined) missing('File');
      else if (under === 'content') send(200, file.content.toString());
      else if (seen.method === 'DELETE') {
        files.delete(id);
        send(200, { id, object: 'file', deleted: true });
      } else send(200, file.object);
    } else if (name === 'batches' && seen.method === 'POST' && id === '') {
      const fields = JSON.parse(body.toString()) as Json;
      const batch = {
        id: newId('batch_'),
        object: 'batch',
        status: 'validating',
        created_at: 1_700_000_000,
        ...fields,
      };
      batches.set(batch.id, batch);
      send(200, batch);
    } else if (name === 'batches') {
      const batch = batches.get(id);
      if (batch === undefined) missing('Batch');
      else {
        if (under === 'cancel') batch['status'] = 'cancelling';
        send(200, batch);
      }
    } else if (seen.method === 'POST' && id === '') {
      const object = {
        id: newId(`${name.replace(/s$/, '')}_`),
        object: name,
        ...(JSON.parse(body.toString()) as Json),
      };
      others.set(object.id, object);
      send(200, object);
    } else {
      const key = name === 'fine_tuning' ? (rest[0] ?? '') : id;
      const object = others.get(key);
      if (name === 'fine_tuning' && id === 'jobs' && seen.method === 'POST' && rest.length === 0) {
        const job = {
          id: newId('ftjob-'),
          object: 'fine_tuning.job',
          status: 'queued',
          ...(JSON.parse(body.toString()) as Json),
        };
        others.set(job.id, job);
        send(200, job);
      } else if (object === undefined) missing(name);
      else if (name === 'uploads' && under === 'parts') {
        const part = { id: newId('part_'), object: 'upload.part', upload_id: id };
        const [data] = readForm(seen.headers['content-type'] ?? '', body);
        parts.set(part.id, data?.content ?? Buffer.alloc(0));
        send(200, part);
      } else if (seen.method === 'DELETE' && under === '') {
        others.delete(key);
        send(200, { id: key, object: `${name}.deleted`, deleted: true });
      } else if (under === '' || (name === 'fine_tuning' && rest.length === 1)) send(200, object);
      else if (name === 'uploads' && under === 'complete')
        send(200, {
          ...object,
          status: 'completed',
          file: addFile(
            'parts.txt',
            String(object['purpose']),
            Buffer.concat(
              (JSON.parse(body.toString()) as { part_ids: readonly string[] }).part_ids.map(
                (part) => parts.get(part) ?? Buffer.alloc(0),
              ),
            ),
          ),
        });
      else
        send(200, {
          object: 'list',
          data: [],
          has_more: false,
          at: seen.path,
          body:
            seen.method === 'POST' && body[0] === 0x7b
              ? (JSON.parse(body.toString()) as unknown)
              : body.length,
        });
    }
  };

  const server = createServer((request, response) => {
    const seen: ObjectRequest = {
      method: request.method ?? '',
      path: (request.url ?? '').replace(root, '').split('?')[0] ?? '',
      query: new URL(request.url ?? '/', 'http://provider').searchParams,
      headers: request.headers,
      received: 0,
      cut: false,
    };
    requests.push(seen);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => {
      seen.received += chunk.length;
      chunks.push(chunk);
    });
    request.on('error', () => {});
    request.on('close', () => {
      if (!request.complete) seen.cut = true;
    });
    request.on('end', () => {
      const answer = (): void => handle(seen, Buffer.concat(chunks), response);
      if (provider.delays === undefined) answer();
      else void provider.delays.then(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const provider: OpenaiObjects = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    files,
    batches,
    failWith: undefined,
    delays: undefined,
    holds: undefined,
    finish(id, reply) {
      const batch = batches.get(id);
      const input = files.get(String(batch?.['input_file_id']));
      if (batch === undefined || input === undefined) throw new Error(`There is no batch ${id}.`);
      const lines = input.content
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Json);
      const out = lines.map((line) => {
        const body = reply(line);
        const failed = body === undefined;
        return JSON.stringify({
          id: `batch_req_${String(line['custom_id'])}`,
          custom_id: line['custom_id'],
          response: failed ? null : { status_code: 200, request_id: 'r', body },
          error: failed ? { code: 'batch_expired', message: 'It was not run.' } : null,
        });
      });
      batch['output_file_id'] = addFile('output.jsonl', 'batch_output', Buffer.from(`${out.join('\n')}\n`))[
        'id'
      ];
      batch['status'] = 'completed';
      batch['completed_at'] = 1_700_000_100;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return provider;
}

interface FormPart {
  readonly name: string;
  readonly filename: string | undefined;
  readonly content: Buffer;
}

/** The parts of a form, read as simply as it can be. */
function readForm(type: string, body: Buffer): readonly FormPart[] {
  const boundary = /boundary="?([^";]+)"?/.exec(type)?.[1] ?? '';
  return body
    .toString('latin1')
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => {
      const end = part.indexOf('\r\n\r\n');
      const head = part.slice(0, end);
      return {
        name: /name="([^"]*)"/.exec(head)?.[1] ?? '',
        filename: /filename="([^"]*)"/.exec(head)?.[1],
        content: Buffer.from(part.slice(end + 4, -2), 'latin1'),
      };
    });
}
