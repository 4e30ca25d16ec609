import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { vi } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import demo from '../../channels/demo/index.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import vidu from '../../channels/vidu.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import type { Budget } from '../../core/sdk/budget.ts';
import { definePlugin } from '../../core/sdk/index.ts';
import providerObjects from '../../plugins/provider-objects/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { adminPassword } from '../plugins/admin/_client.ts';
import { startAnthropicObjects } from '../support/anthropic-objects.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startGeminiObjects } from '../support/gemini-objects.ts';
import { startObjectServer } from '../support/object-server.ts';
import { startOpenaiObjects } from '../support/openai-objects.ts';

type Json = Record<string, unknown>;

/** A request of a client, below the gateway's address. */
export interface Asking {
  readonly method: string;
  readonly path: string;
  readonly body?: Json | (() => FormData);
  /** `$key` stands for the client's key. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response with its JSON; an empty object where the body is something else. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

/** A client with a key of its own. */
export interface Client {
  readonly url: string;
  readonly key: string;
  send(asking: Asking): Promise<Answered>;
  /** Sets the key's one budget. */
  limit(budget: Budget): Promise<void>;
  /** Returns the spent and reserved amounts of a budget. */
  standing(budget: Budget): Promise<{ readonly spent: number; readonly reserved: number }>;
}

/** A gateway before the demo and three fake providers that keep objects. */
export interface MoneyStage {
  readonly gateway: TestGateway;
  /** Every route of the gateway: `POST /v1/files`, `WS /v1/realtime`, `ALIAS messages /v1/projects/`. */
  readonly routes: ReadonlySet<string>;
  readonly openai: Awaited<ReturnType<typeof startOpenaiObjects>>;
  readonly anthropic: Awaited<ReturnType<typeof startAnthropicObjects>>;
  readonly gemini: Awaited<ReturnType<typeof startGeminiObjects>>;
  /** Number of requests that reached a provider. */
  requestCount(): number;
  client(): Promise<Client>;
  close(): Promise<void>;
}

/** Ten micro-dollars: no request that costs anything fits, because a token costs a hundred times as much. */
export const tiny: Budget = { unit: 'micro-dollar', period: 'total', amount: 10 };
/** One token. */
export const oneToken: Budget = { unit: 'token', period: 'total', amount: 1 };
/** More than any request may come to. */
export const ample: Budget = { unit: 'micro-dollar', period: 'total', amount: 1e14 };

const slow = { poll: { first: 60_000, most: 60_000 } };
const price = { input: 1000, output: 4000, cacheRead: 100, perImage: 1, perSecond: 1, perCharacter: 1 };

/** Starts one. Close it in the end. */
export async function startMoneyStage(): Promise<MoneyStage> {
  const [ofOpenai, ofAnthropic, ofGemini, films] = await Promise.all([
    startOpenaiObjects(),
    startAnthropicObjects(),
    startGeminiObjects(),
    startObjectServer((_, answer) => answer(200, { task_id: randomUUID(), state: 'created' })),
  ]);
  let attempts = 0;
  const counter = definePlugin({
    name: 'attempt-counter',
    stage: 'translate',
    setup: () =>
      function countAttempt(call, next) {
        attempts += 1;
        return next(call);
      },
  });
  const registered = registeredRoutes();
  const gateway = await startGateway({
    adminPassword,
    prices: { '*': price, 'per-call': { perCall: 1 } },
    plugins: [counter(), providerObjects(slow), videoTasks({ ...slow, fresh: 0 })],
    channels: [
      demo({ models: ['demo', 'jimeng_v30', 'per-call'] }),
      vidu({ key: 'v', baseUrl: films.url, models: ['viduq2'] }),
      openai({ key: 'sk-there', baseUrl: `${ofOpenai.url}/v1`, models: ['gpt-a'] }),
      anthropic({ key: 'sk-ant', baseUrl: `${ofAnthropic.url}/v1`, models: ['claude-a'] }),
      gemini({ key: 'AIza', baseUrl: `${ofGemini.url}/v1beta`, models: ['gemini-a'] }),
    ],
  });
  const routes = registered.end(gateway);
  const ledger = openLedger(gateway.stores);
  return {
    gateway,
    routes,
    openai: ofOpenai,
    anthropic: ofAnthropic,
    gemini: ofGemini,
    requestCount: () =>
      [ofOpenai, ofAnthropic, ofGemini].reduce((sum, { requests }) => sum + requests.length, attempts),
    async client() {
      const { value, record } = await gateway.apiKeys.create({ name: randomUUID() });
      return {
        url: gateway.url,
        key: value,
        send: (asking) => send(gateway.url, value, asking),
        limit: async (budget) => void (await gateway.apiKeys.update(record.id, { budgets: [budget] })),
        async standing(budget) {
          const [state] = await ledger.states(record.id, [budget]);
          if (state === undefined) throw new Error('The budget has no state.');
          return { spent: state.spent, reserved: state.reserved };
        },
      };
    },
    async close() {
      await gateway.close();
      await Promise.all([ofOpenai.close(), ofAnthropic.close(), ofGemini.close(), films.close()]);
    },
  };
}

/** Collects what gateways register with their router from now on. */
function registeredRoutes() {
  const koa = createRequire(import.meta.url)('@koa/router') as {
    readonly Router: {
      readonly prototype: { register(path: string | RegExp, methods: string[]): { readonly path: string } };
    };
  };
  const spy = vi.spyOn(koa.Router.prototype, 'register');
  return {
    end({ gateway: { formats } }: TestGateway): ReadonlySet<string> {
      const routes = new Set(
        spy.mock.calls.flatMap(([, methods], index) => {
          const layer = spy.mock.results[index]?.value as { readonly path: string } | undefined;
          return methods.map((method) => `${method.toUpperCase()} ${layer?.path}`);
        }),
      );
      spy.mockRestore();
      for (const { name, sockets = [], tunnels = [], aliases = [] } of formats) {
        for (const { path } of [...sockets, ...tunnels]) routes.add(`WS ${path}`);
        for (const { prefix } of aliases) routes.add(`ALIAS ${name} ${prefix}`);
      }
      return routes;
    },
  };
}

async function send(
  url: string,
  key: string,
  { method, path, body, headers = {} }: Asking,
): Promise<Answered> {
  const form = typeof body === 'function' ? body() : undefined;
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && form === undefined ? { 'content-type': 'application/json' } : {}),
      ...Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, text.replace('$key', key)])),
    },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: form ?? JSON.stringify(body) }),
  });
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = {};
  }
  return { status: response.status, headers: response.headers, body: (json ?? {}) as Json };
}
