import { expect } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ample, type Answered, type Asking, type Client, type MoneyStage } from './_endpoint-stage.ts';

type Json = Record<string, unknown>;

/** Effect of one use of a route on the budget of its key. */
export interface Case {
  /**
   * `reserved`: its cost is reserved before the provider is asked, and charged afterwards. `refused`: keys with budgets get 403. `free`: nothing
   * is charged for it. `absent`: the path serves nothing here.
   */
  readonly money: 'reserved' | 'refused' | 'free' | 'absent';
  /** Reason, for the title of the test. */
  readonly why?: string;
  /** Told apart from other uses of the route in the title of the test. */
  readonly use?: string;
  readonly body?: Asking['body'];
  /** The body, where it names what {@link make} has created. */
  readonly bodyOf?: (id: string) => Json;
  readonly headers?: Readonly<Record<string, string>>;
  /** In place of `*rest` in the route, `*model`, and behind the path. */
  readonly rest?: string;
  readonly model?: string;
  readonly query?: string;
  /** The path of an alias. */
  readonly path?: string;
  /** Creates what the route names, with a key that has no budget yet. Resolves with its id. */
  readonly make?: Make;
  /** Status for a key whose budget is used up. Default: 200. */
  readonly status?: number;
  /** True for a cost in units other than tokens, which a budget in tokens does not count. */
  readonly isUnitless?: boolean;
  /** True for a refusal that stands in a response which the client asks for later. */
  readonly isRefusedLater?: boolean;
  /** Brings what was created to its end, so that it is charged. */
  readonly settle?: (stage: MoneyStage, client: Client, created: Answered) => Promise<void>;
}

/** Uses of routes, by route. */
export type Table = Readonly<Record<string, readonly Case[]>>;

/** Creates an object. */
export type Make = (client: Client, stage: MoneyStage) => Promise<string>;

type More = Omit<Case, 'money' | 'why'>;

/** A use whose cost is reserved and charged. */
export const reserved = (body?: Asking['body'], more: More = {}): Case => ({
  money: 'reserved',
  ...(body === undefined ? {} : { body }),
  ...more,
});
/** A use that keys with budgets are refused. */
export const refused = (why: string, more: More = {}): Case => ({ money: 'refused', why, ...more });
/** A use that costs nothing. */
export const free = (why: string, more: More = {}): Case => ({ money: 'free', why, ...more });
/** A use that is not served. */
export const absent = (more: More = {}): Case => ({ money: 'absent', ...more });

/** The headers by which a path that several formats share is told to be of messages, or of generateContent. */
export const asMessages = { 'anthropic-version': '2023-06-01' };
export const asGemini = { 'x-goog-api-key': '$key' };

/** The format that the headers of a use choose on a path that several formats share. */
export function formatOf({ headers = {} }: Case): string {
  if ('anthropic-version' in headers) return 'messages';
  return 'x-goog-api-key' in headers ? 'generate-content' : 'chat-completions';
}

/** The path of a use, with what its route leaves open. */
export function pathOf(
  route: string,
  { rest = 'none', model = 'demo', query = '', path }: Case,
  id: string,
): string {
  const open = path ?? route.slice(route.indexOf(' ') + 1);
  return (
    open
      .replaceAll('\\:', '%3A')
      .replace('{/*rest}', '/none')
      .replace('{/*path}', '/')
      .replace('*rest', rest)
      .replace('*model', model)
      .replace(/:(?:id|store)/, id)
      .replace(':item', 'msg_none')
      .replaceAll('%3A', ':') + query
  );
}

function idIn({ status, body }: Answered): string {
  const { id, name } = body as { readonly id?: unknown; readonly name?: unknown };
  const found = id ?? (typeof name === 'string' ? name.replace(/^.*\//, '') : undefined);
  if (status !== 200 || typeof found !== 'string')
    throw new Error(`Nothing was made: ${status} ${JSON.stringify(body)}`);
  return found;
}

/** Creates an object by one request. */
export function made(path: string, body: Asking['body'], headers?: Asking['headers']): Make {
  return async (client) => {
    const asking = { method: 'POST', path, ...(body === undefined ? {} : { body }) };
    return idIn(await client.send({ ...asking, ...(headers === undefined ? {} : { headers }) }));
  };
}

/** As {@link made}, for what is charged after its response: waits until that is done. */
export function madeAndCharged(path: string, body: Asking['body']): Make {
  const make = made(path, body);
  return async (client, stage) => {
    const id = await make(client, stage);
    await eventually(async () => expect((await client.standing(ample)).spent).toBeGreaterThan(0));
    return id;
  };
}

const line = JSON.stringify({
  custom_id: 'one',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'gpt-a', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 },
});

/** A form with a file. */
export const fileForm =
  (
    fields: Readonly<Record<string, string>> = { purpose: 'batch' },
    content: string | Buffer = line,
    name = 'b.jsonl',
  ) =>
  (): FormData => {
    const form = new FormData();
    for (const [field, value] of Object.entries(fields)) form.set(field, value);
    form.set('file', new Blob([new Uint8Array(Buffer.from(content))]), name);
    return form;
  };

export const aFile: Make = made('/v1/files', fileForm());
export const aMessagesFile: Make = made('/v1/files', fileForm({}, 'text', 'f.txt'), asMessages);

/** A file of generateContent, uploaded in two requests. */
export const aGeminiFile: Make = async (client) => {
  const words = (command: string, more: object = {}) => ({
    'x-goog-upload-protocol': 'resumable',
    'x-goog-upload-command': command,
    ...more,
  });
  const begun = await client.send({
    method: 'POST',
    path: '/upload/v1beta/files',
    body: { file: { mimeType: 'text/plain' } },
    headers: words('start'),
  });
  const address = new URL(begun.headers.get('x-goog-upload-url') ?? '');
  const ended = await client.send({
    method: 'POST',
    path: address.pathname + address.search,
    body: { text: 'x' },
    headers: words('upload, finalize', { 'x-goog-upload-offset': '0' }),
  });
  return idIn({ ...ended, body: (ended.body['file'] ?? {}) as Json });
};

const batchOf = (input: string) => ({
  input_file_id: input,
  endpoint: '/v1/chat/completions',
  completion_window: '24h',
});

export const aBatch: Make = async (client, stage) =>
  made('/v1/batches', batchOf(await aFile(client, stage)))(client, stage);

export const messageRequests = {
  requests: [
    {
      custom_id: 'one',
      params: { model: 'claude-a', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] },
    },
  ],
};
export const aMessageBatch: Make = made('/v1/messages/batches', messageRequests, asMessages);

const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
export const geminiRequests = {
  batch: { inputConfig: { requests: { requests: [{ request: { contents } }] } } },
};
export const aGeminiBatch: Make = made('/v1beta/models/gemini-a:batchGenerateContent', geminiRequests);

export const cached = { model: 'models/gemini-a', contents, ttl: '3600s' };
export const aCache: Make = made('/v1beta/cachedContents', cached);
export const aFinishedFilm: Make = async (client) => {
  const id = idIn(
    await client.send({
      method: 'POST',
      path: '/v1/videos',
      body: { model: 'demo', prompt: 'the moon !ready=0' },
    }),
  );
  await client.send({ method: 'GET', path: `/v1/videos/${id}` });
  return id;
};
export const aSearchStore: Make = made('/v1beta/fileSearchStores', {});

export const bodies = {
  upload: { bytes: 1, filename: 'a', mime_type: 'text/plain', purpose: 'user_data' },
  job: { model: 'gpt-a' },
  store: { name: 'notes' },
  container: { name: 'box' },
  eval: { name: 'e', data_source_config: { type: 'custom' } },
};

/** A batch of a file that is created first. */
export const fileBatch: More = {
  make: aFile,
  bodyOf: batchOf,
  async settle({ openai }, client, created) {
    const id = idIn(created);
    openai.finish(id, () => ({
      object: 'chat.completion',
      model: 'gpt-a',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    }));
    await client.send({ method: 'GET', path: `/v1/batches/${id}` });
  },
};

export const settleMessages: NonNullable<Case['settle']> = async ({ anthropic }, client, created) => {
  const id = idIn(created);
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-a',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  };
  anthropic.finish(id, [{ custom_id: 'one', result: { type: 'succeeded', message } }]);
  await client.send({ method: 'GET', path: `/v1/messages/batches/${id}`, headers: asMessages });
};

export const settleGemini: NonNullable<Case['settle']> = async ({ gemini }, client, created) => {
  const id = idIn(created);
  const response = {
    embedding: { values: [1, 2] },
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  };
  gemini.finish(id, [{ response }], 'inline');
  await client.send({ method: 'GET', path: `/v1beta/batches/${id}` });
};
