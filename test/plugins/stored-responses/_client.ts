import { onTestFinished } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import type { JsonObject } from 'sluice';
import { openResponseStore } from 'sluice/internal';
import type { ResponseStore } from '../../../core/state/responses/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

/** An answer with its parsed body. */
export interface Answer {
  readonly status: number;
  readonly body: AnswerBody;
}

/** The fields that tests look at; which of them a body has depends on what it is. */
export interface AnswerBody {
  readonly id: string;
  readonly status: string;
  readonly created_at: number;
  readonly metadata: JsonObject;
  readonly data: readonly ShownItem[];
  readonly first_id: string;
  readonly last_id: string;
  readonly has_more: boolean;
  readonly error: { readonly type: string; readonly message: string; readonly param: string | null };
}

/** An item as lists show it. */
export interface ShownItem {
  readonly id: string;
  readonly content: readonly { readonly text: string }[];
}

/** One caller of a gateway. */
export interface Client {
  /** The id under which the caller's things are kept. */
  readonly owner: string;
  get(path: string): Promise<Answer>;
  post(path: string, body?: unknown): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** The response as it comes, for streams. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

/** A gateway with its store, closed by the test that started it. */
export async function startStored(
  config: Parameters<typeof startGateway>[0] = {},
): Promise<{ readonly gateway: TestGateway; readonly store: ResponseStore; client(): Promise<Client> }> {
  const gateway = await startGateway({ channels: [demo()], ...config });
  onTestFinished(() => gateway.close());
  return {
    gateway,
    store: openResponseStore(gateway.stores),
    client: async () => {
      const { record, value } = await gateway.apiKeys.create({ name: 'one of the test' });
      return clientOf(gateway, value, record.id);
    },
  };
}

/** A caller with this key. */
export function clientOf({ url }: { readonly url: string }, key: string, owner: string): Client {
  const send = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(url + path, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });
  const sendRequest = async (path: string, init?: RequestInit): Promise<Answer> => {
    const response = await send(path, init);
    return { status: response.status, body: (await response.json()) as AnswerBody };
  };
  return {
    owner,
    get: (path) => sendRequest(path),
    delete: (path) => sendRequest(path, { method: 'DELETE' }),
    post: (path, body) =>
      sendRequest(path, {
        method: 'POST',
        ...(body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      }),
    fetch: send,
  };
}
