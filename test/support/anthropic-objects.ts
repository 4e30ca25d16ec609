import { fileInForm, startObjectServer, type ObjectRequest, type Json } from './object-server.ts';

/** A provider on a free port that keeps files and message batches in memory, as Anthropic's API reference describes them. */
export interface AnthropicObjects {
  readonly url: string;
  readonly requests: ObjectRequest[];
  readonly batches: Map<string, Json>;
  /** Ends a batch with these results. */
  finish(id: string, results: readonly Json[]): void;
  close(): Promise<void>;
}

/** Starts one. */
export async function startAnthropicObjects(): Promise<AnthropicObjects> {
  const files = new Map<string, { readonly object: Json; readonly content: string }>();
  const batches = new Map<string, Json>();
  const results = new Map<string, string>();
  let count = 0;
  const newId = (kind: string): string => `${kind}_${(count += 1)}`;
  const server = await startObjectServer((request, answer) => {
    const { method, path } = request;
    const json = (): Json => JSON.parse(request.body.toString()) as Json;
    const missing = (): void =>
      answer(404, { type: 'error', error: { type: 'not_found_error', message: 'Not found' } });
    const [, , name, id = '', ...under] = path.replace('/messages/batches', '/batches').split('/');
    if (name === 'files' && method === 'POST') {
      const content = fileInForm(request.body);
      const object = {
        id: newId('file'),
        type: 'file',
        filename: 'f.txt',
        mime_type: 'text/plain',
        size_bytes: content.length,
        created_at: '2026-01-01T00:00:00Z',
        downloadable: true,
      };
      files.set(object.id, { object, content });
      answer(200, object);
    } else if (name === 'files') {
      const file = files.get(id);
      if (file === undefined) missing();
      else if (under[0] === 'content') answer(200, file.content);
      else if (method === 'DELETE') {
        files.delete(id);
        answer(200, { id, type: 'file_deleted' });
      } else answer(200, file.object);
    } else if (name === 'batches' && method === 'POST' && id === '') {
      const { requests } = json() as { requests: readonly Json[] };
      const batch: Json = {
        id: newId('msgbatch'),
        type: 'message_batch',
        processing_status: 'in_progress',
        request_counts: { processing: requests.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
        created_at: '2026-01-01T00:00:00Z',
        ended_at: null,
        results_url: null,
      };
      batches.set(String(batch['id']), batch);
      answer(200, batch);
    } else if (name === 'batches') {
      const batch = batches.get(id);
      if (batch === undefined) missing();
      else if (under[0] === 'results') answer(200, results.get(id) ?? '');
      else if (under[0] === 'cancel') {
        batch['processing_status'] = 'canceling';
        answer(200, batch);
      } else if (method === 'DELETE') {
        batches.delete(id);
        answer(200, { id, type: 'message_batch_deleted' });
      } else answer(200, batch);
    } else if (name === 'messages')
      answer(200, {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: json()['model'],
        content: [{ type: 'text', text: 'Hi' }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 3, output_tokens: 2 },
      });
    else missing();
  });
  return {
    ...server,
    batches,
    finish(id, lines) {
      const batch = batches.get(id);
      if (batch === undefined) throw new Error(`There is no batch ${id}.`);
      batch['processing_status'] = 'ended';
      batch['ended_at'] = '2026-01-01T01:00:00Z';
      batch['results_url'] = `https://api.example.com/v1/messages/batches/${id}/results`;
      results.set(id, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
    },
  };
}
