/** Endpoints of stored responses: retrieve, stream, cancel, delete, and list the input items. */
import { of, type Observable } from 'rxjs';
import { GatewayError, wrongType, type GatewayEvent, type Call } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { ResponseStore, StoredResponse } from './core-types.ts';
import { addConversationEndpoints } from './conversations.ts';
import type { AddEndpoint, EndpointRequest } from './endpoint.ts';
import { pageBody, pageOf, readPageQuery } from './pages.ts';
import { replay } from './replay.ts';
import { ownerOf } from './resolve.ts';
import { asSeen, isAlive, isRunning } from './seen.ts';

/** Options of the endpoints. */
export interface EndpointOptions {
  /** Unix milliseconds. Default: the clock. */
  readonly now?: () => number;
}

/** Functions of background runs that the endpoints need. */
export interface EndpointHooks {
  /** Stops a background run in any process. Returns its stored response; undefined when it is gone. */
  cancel(owner: string, id: string): Promise<StoredResponse | undefined>;
}

const format = 'responses';

/** Adds the endpoints of stored responses and conversations. Those of other callers are reported as not found. */
export function addEndpoints(
  tools: Pick<InternalTools, 'endpoint' | 'format'>,
  store: ResponseStore,
  { now = Date.now }: EndpointOptions,
  { cancel }: EndpointHooks,
): void {
  const add: AddEndpoint = (method, path, handle) =>
    tools.endpoint({
      method,
      path,
      format,
      handle: async (call: Call, params) =>
        of({ type: 'result', value: await handle(requestOf(call, params)) }),
    });

  const find = async (owner: string, id: string): Promise<StoredResponse> => {
    const stored = await store.find(owner, id);
    if (stored === undefined) throw noResponse(id);
    return asSeen(stored, now());
  };

  const streamed = async ({
    owner,
    params: { id },
    query,
  }: EndpointRequest): Promise<Observable<GatewayEvent>> => {
    const startingAfter = readStartingAfter(query);
    const codec = tools.format(format)?.codecs.chat;
    if (codec === undefined) throw new Error(`There is no format ${format}.`);
    return replay(await find(owner, id), {
      codec,
      startingAfter,
      find: () => find(owner, id),
      async state() {
        const state = await store.state(owner, id);
        return state && { status: state.status, alive: isAlive(state, now()) };
      },
    });
  };

  tools.endpoint({
    method: 'GET',
    path: '/v1/responses/:id',
    format,
    streams: (query) => query.get('stream') === 'true',
    async handle(call: Call, params) {
      const request = requestOf(call, params);
      if (call.stream) return streamed(request);
      const { response } = await find(request.owner, request.params.id);
      return of({ type: 'result', value: response });
    },
  });

  add('DELETE', '/v1/responses/:id', async ({ owner, params: { id } }) => {
    if (isRunning(await find(owner, id))) await cancel(owner, id);
    if (!(await store.remove(owner, id))) throw noResponse(id);
    return { id, object: 'response', deleted: true };
  });

  add('POST', '/v1/responses/:id/cancel', async ({ owner, params: { id } }) => {
    const stored = await find(owner, id);
    if (stored.response['background'] !== true) throw notInBackground(id);
    // A repeated cancel, or one that came too late, changes nothing.
    if (!isRunning(stored)) return stored.response;
    const after = await cancel(owner, id);
    if (after === undefined) throw noResponse(id);
    return after.response;
  });

  add('GET', '/v1/responses/:id/input_items', async ({ owner, params: { id }, query }) => {
    const wanted = readPageQuery(query);
    return pageBody(pageOf((await find(owner, id)).input, wanted));
  });

  addConversationEndpoints(add, store, now);
}

function requestOf(call: Call, { id = '', item = '' }: Readonly<Record<string, string>>): EndpointRequest {
  return { owner: ownerOf(call), params: { id, item }, query: call.wire.query, body: call.body };
}

function readStartingAfter(query: URLSearchParams): number {
  const text = query.get('starting_after');
  if (text === null) return -1;
  if (!/^\d{1,15}$/.test(text)) throw wrongType('starting_after', 'a sequence number');
  return Number(text);
}

function notInBackground(id: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `Response with id '${id}' cannot be cancelled: only responses made with background set to true can be.`,
  );
}

function noResponse(id: string): GatewayError {
  return new GatewayError('not_found', `Response with id '${id.slice(0, 200)}' not found.`);
}
