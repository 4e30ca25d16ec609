import type { ServerResponse } from 'node:http';
import { openaiLike } from '../../channels/_kit/dialect/openai-like.ts';
import type { ChannelEntry } from '../../core/sdk/define.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

/** JSON object of an item, response or frame. */
export type Json = { readonly [key: string]: unknown };

/** URL of the gateway and API key. */
export interface Access {
  readonly url: string;
  readonly key: string;
}

/** Response of the gateway. */
export interface Got {
  readonly status: number;
  readonly body: Json;
}

/** Sends a request and returns its JSON response. */
export async function call(access: Access, method: string, path: string, body?: unknown): Promise<Got> {
  const response = await fetch(access.url + path, {
    method,
    headers: { authorization: `Bearer ${access.key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Json };
}

/** Returns the parsed frames of a streamed response. Throws when the request is refused. */
export async function streamed(access: Access, body: Json): Promise<readonly Json[]> {
  const response = await fetch(`${access.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${access.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return framesOf(text);
}

/** Parses the complete frames in the text of a stream. */
export function framesOf(text: string): readonly Json[] {
  const complete = text.slice(0, text.lastIndexOf('\n\n') + 1);
  return [...complete.matchAll(/^data: ?(\{.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Json);
}

/** Runs a turn, streamed or not, and returns its response. Throws when it is refused or fails. */
export async function runTurn(access: Access, body: Json, stream = false): Promise<Json> {
  if (stream) {
    return responseIn((await streamed(access, body)).at(-1));
  }
  const got = await call(access, 'POST', '/v1/responses', body);
  if (got.status !== 200) throw new Error(`${got.status}: ${JSON.stringify(got.body)}`);
  return got.body;
}

/** Returns the output items of a response. */
export function output(response: Json): readonly Json[] {
  return response.output as readonly Json[];
}

/** Returns the response in a frame. */
export function responseIn(frame: Json | undefined): Json {
  if (typeof frame?.response !== 'object') throw new Error(`No response in ${JSON.stringify(frame)}`);
  return frame.response as Json;
}

/** Returns the input items of a request. */
export function inputOf(body: Json | undefined): readonly Json[] {
  if (!Array.isArray(body?.input)) throw new Error(`No items in ${JSON.stringify(body)}`);
  return body.input as readonly Json[];
}

/** Returns the text of a response. */
export function textOf(response: Json): string {
  return output(response)
    .filter(({ type }) => type === 'message')
    .flatMap(({ content }) => content as readonly Json[])
    .map(({ text }) => String(text))
    .join('');
}

/** Returns the tool call in a response. */
export function callIn(response: Json): Json {
  const found = output(response).find(({ type }) => type === 'function_call');
  if (found === undefined) throw new Error(`There is no call in ${JSON.stringify(response)}`);
  return found;
}

/** Fake provider that has the Responses API and stores its responses. */
export interface NativeProvider extends ScriptedUpstream {
  readonly channel: ChannelEntry;
  /** Returns the parsed bodies of the requests. */
  bodies(): readonly Json[];
  /** Deletes all stored responses. */
  forget(): void;
}

/** Starts one that answers with `native N` and keeps responses by id; `script` may answer in its place. */
export async function startNative(
  options: { readonly keeps?: boolean } = {},
  script?: (request: SeenRequest, response: ServerResponse) => boolean,
): Promise<NativeProvider> {
  const { keeps = true } = options;
  let kept = new Set<string>();
  const upstream = await startUpstream((request, response, count) => {
    if (script?.(request, response) === true) return;
    const body = JSON.parse(request.body.toString()) as Json;
    const previous = body.previous_response_id;
    if (typeof previous === 'string' && !kept.has(previous)) {
      const message = `Previous response with id '${previous}' not found.`;
      const error = {
        message,
        type: 'invalid_request_error',
        param: 'previous_response_id',
        code: 'previous_response_not_found',
      };
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
      return;
    }
    const id = `resp_native${count}`;
    if (keeps && body.store !== false) kept.add(id);
    answer(response, body, nativeResponse(id, count, body, keeps));
  });
  const native = openaiLike({
    name: 'native',
    baseUrl: upstream.url,
    models: ['native-*'],
    speaks: { chat: ['responses'] },
  });
  return {
    ...upstream,
    channel: native({ id: 'native', key: 'k' }),
    bodies: () => upstream.requests.map((request) => JSON.parse(request.body.toString()) as Json),
    forget: () => (kept = new Set()),
  };
}

function nativeResponse(id: string, count: number, body: Json, keeps: boolean): Json {
  return {
    id,
    object: 'response',
    created_at: 1_790_000_000,
    status: 'completed',
    error: null,
    incomplete_details: null,
    model: body.model,
    previous_response_id: body.previous_response_id ?? null,
    store: keeps && body.store !== false,
    output: [
      {
        id: `msg_native${count}`,
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: `native ${count}`, annotations: [] }],
      },
    ],
    usage: {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    },
  };
}

function answer(response: ServerResponse, body: Json, value: Json): void {
  if (body.stream !== true) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    return;
  }
  const item = output(value)[0] ?? {};
  const [part] = item.content as readonly Json[];
  const at = { item_id: item.id, output_index: 0, content_index: 0 };
  const frames: Json[] = [
    { type: 'response.created', response: { ...value, status: 'in_progress', output: [], usage: null } },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...at, delta: part?.text },
    { type: 'response.output_text.done', ...at, text: part?.text },
    { type: 'response.content_part.done', ...at, part },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: value },
  ];
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [index, frame] of frames.entries()) {
    response.write(
      `event: ${String(frame.type)}\ndata: ${JSON.stringify({ ...frame, sequence_number: index })}\n\n`,
    );
  }
  response.end();
}
