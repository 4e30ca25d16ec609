import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Observable, type Subscriber } from 'rxjs';
import { expect, onTestFinished } from 'vitest';
import { type Call } from '../../../core/sdk/call.ts';
import { settingsSchema } from '../../../core/settings/index.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Codec, Format, SocketRoute } from '../../../core/sdk/format.ts';
import type { Gateway } from '../../../core/front/gateway.ts';
import { bodyReader } from '../../../core/front/body.ts';
import { createSockets, type Sockets } from '../../../core/front/sockets.ts';
import { createLog } from '../../../core/log.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { Notices } from '../../../core/sdk/notices.ts';

/** Call whose reply the test writes. */
export interface OpenCall {
  readonly call: Call;
  readonly name: string;
  readonly reply: Subscriber<GatewayEvent>;
  /** True when the reply was unsubscribed. */
  ended: boolean;
  sendText(text: string): void;
}

/** WebSockets of a gateway over a server of their own. */
export interface Stage {
  readonly url: string;
  readonly server: Server;
  readonly sockets: Sockets;
  readonly calls: OpenCall[];
  /** The log's lines, parsed. */
  readonly lines: Record<string, unknown>[];
  called(count: number): Promise<OpenCall>;
  /** Advances the clock of the connections by milliseconds. */
  pass(ms: number): void;
}

/** Codec that sends texts as messages and drops most other events, because the formats have tests of their own. */
const codec = {
  format: 'plain',
  operation: 'chat',
  peek: (body: { model: string }) => ({ model: body.model, stream: true }),
  clientFraming: () => 'sse',
  validate(body: { model: string }) {
    if (body.model === 'wrong')
      throw new GatewayError('invalid_value', 'model is wrong.', { param: 'model' });
    return {};
  },
  encodeStream: () => ({
    event: (event: GatewayEvent) => {
      if (event.type === 'text-delta' && event.text === 'unsayable') throw new Error('no such frame');
      if (event.type === 'text-delta') return [{ json: { type: 'text', text: event.text } }];
      return event.type === 'usage' ? [] : [{ json: { type: `event ${event.type}` } }];
    },
    end: () => [{ json: { type: 'done' } }, { text: '[DONE]' }],
    error: (error: GatewayError) => [{ json: { type: 'error', code: error.code } }],
    keepAlive: () => [],
  }),
} as unknown as Codec;

/** The route by which a WebSocket is opened. */
export const route: SocketRoute = {
  path: '/speak',
  operation: 'chat',
  protocols: ['plain'],
  read(message) {
    const lane = String(message.lane ?? '');
    if (message.type === 'cancel') return { type: 'cancel', lane };
    if (message.type !== 'create')
      return { type: 'answer', message: { type: 'error', echo: message.echo ?? '' } };
    return { type: 'call', lane, body: { model: String(message.model ?? 'm') } };
  },
  write: (data, lane) =>
    data === '[DONE]' ? undefined : JSON.stringify({ ...(JSON.parse(data) as object), lane }),
  failure: ({ code, status }, lane, frames) => [
    { type: 'error', code, status, lane, begun: frames.length > 0 },
  ],
};

/** The format of that route. */
export const format = {
  name: 'plain',
  routes: [],
  codecs: { chat: codec },
  sockets: [route],
  errorReply: ({ code, status }: GatewayError) => ({ status, headers: {}, body: { error: code } }),
  replyHeaders: () => ({}),
} as unknown as Format;

/** Options that few tests change. */
interface MoreOptions {
  readonly formats?: readonly Format[];
  /** Runs before a call is answered. */
  readonly before?: (call: Call) => Promise<void>;
}

/** Starts the WebSockets of a gateway. `admit` throws what refuses a connection or a call. */
export async function startSockets(
  timeouts: Record<string, number> = {},
  admit: (call: Call) => void = () => {},
  limits: Record<string, number> = {},
  { formats = [format], before = () => Promise.resolve() }: MoreOptions = {},
): Promise<Stage> {
  const calls: OpenCall[] = [];
  const lines: Record<string, unknown>[] = [];
  const log = createLog('debug', {
    write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  const handle = async (call: Call): Promise<Observable<GatewayEvent>> => {
    admit(call);
    await call.get(bodyReader)?.();
    await before(call);
    return new Observable((reply) => {
      const openCall: OpenCall = {
        call,
        name: call.model,
        reply,
        ended: false,
        sendText: (text) => reply.next({ type: 'text-delta', block: 0, choice: 0, text }),
      };
      calls.push(openCall);
      return () => {
        openCall.ended = true;
      };
    });
  };
  const gateway = {
    settings: settingsSchema.parse({ timeouts, limits }),
    formats,
    log,
    notices: new Notices(log),
    handle,
    identified: (terminal: Gateway['handle']) => async (call: Call) => {
      admit(call);
      return terminal(call);
    },
  } as unknown as Gateway;
  let ids = 0;
  const sockets = createSockets(
    { ...gateway, bodyBudget: { most: Infinity, take() {}, giveBack() {} } },
    () => `req_${(ids += 1)}`,
    () => '127.0.0.1',
  );
  const server = createServer(
    { shouldUpgradeCallback: (request) => sockets.wants(request) },
    (_request, response) => response.writeHead(404, { 'content-type': 'application/json' }).end('{}'),
  );
  server.on('upgrade', (request, socket, head) => sockets.upgrade(request, socket, head));
  let ahead = 0;
  const ticker = setInterval(() => sockets.tick(performance.now() + ahead), 5);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    sockets.endAll(new GatewayError('server_is_overloaded', 'The test is over.'));
    await new Promise((resolve) => server.close(resolve));
    clearInterval(ticker);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/speak`,
    server,
    sockets,
    calls,
    lines,
    pass(ms) {
      ahead += ms;
    },
    async called(count) {
      await expect.poll(() => calls.length, { interval: 2 }).toBeGreaterThanOrEqual(count);
      return calls[count - 1] as OpenCall;
    },
  };
}

/** True for the message that ends a reply. */
export const isDone = ({ type }: Record<string, unknown>): boolean => type === 'done';
/** True for the message of an error. */
export const isError = ({ type }: Record<string, unknown>): boolean => type === 'error';
