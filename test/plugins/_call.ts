import { firstValueFrom, of, toArray, type Observable } from 'rxjs';
import type { Call, Wire } from '../../core/sdk/call.ts';
import { Exchange } from '../../core/call/exchange.ts';
import { firstView } from '../../core/call/view.ts';
import type { Next as PluginNext } from '../../core/sdk/author/plugin.ts';
import type { Handler, Next, PluginSpec } from '../../core/sdk/define.ts';
import type { InternalTools } from '../../core/config/internal-tools.ts';
import type { Codec, Format, Operation } from '../../core/sdk/format.ts';
import { createLog } from '../../core/log.ts';
import type { ChatRequest, ChatSettings } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { Notices } from '../../core/sdk/notices.ts';
import { MemoryRates } from '../../core/money/rates/memory.ts';
import type { z } from 'zod';

/** What a test says of a call; everything else is ordinary. */
export interface CallOptions {
  readonly operation?: Operation;
  readonly format?: string;
  readonly model?: string;
  readonly stream?: boolean;
  /** What the body says besides the model: the format of these calls reads it off as it stands. */
  readonly settings?: ChatSettings;
  readonly headers?: Wire['headers'];
  readonly query?: string;
  readonly ip?: string;
}

/** A call as the front end makes it, in a format whose bodies are decoded requests. `exchange` ends it. */
export function testCall(options: CallOptions = {}): { readonly call: Call; readonly exchange: Exchange } {
  const { operation = 'chat', model, stream = false, settings = {} } = options;
  const wire: Wire = {
    method: 'POST',
    path: '/v1/plain',
    query: new URLSearchParams(options.query),
    headers: { ...options.headers },
    params: {},
    ip: options.ip ?? '192.0.2.7',
    bytes: Buffer.alloc(0),
    body: undefined,
  };
  const format = plainFormat(options.format ?? 'plain');
  const exchange = new Exchange('req_test', operation, format, plainCodec(format.name, operation), wire);
  if (model !== undefined) {
    const body = { model, stream, settings: settings as unknown as JsonObject };
    exchange.understand(Buffer.from(JSON.stringify(body)), body);
  }
  return { call: firstView(exchange), exchange };
}

function plainFormat(name: string): Format {
  return { name, routes: [], codecs: {} } as unknown as Format;
}

function plainCodec(format: string, operation: Operation): Codec {
  const codec: Pick<Codec, 'format' | 'operation' | 'peek' | 'clientFraming' | 'decodeRequest'> = {
    format,
    operation,
    peek: ({ model, stream }) => ({ model: String(model), stream: stream === true }),
    clientFraming: () => 'sse',
    decodeRequest: (body) =>
      ({ operation, format, system: [], messages: [], tools: [], ...body }) as unknown as ChatRequest,
  };
  return codec as unknown as Codec;
}

/** Lines of a log made for one test. */
export type Lines = Record<string, unknown>[];

/** What a plugin's `setup` gets in a test: a log that is kept, and whatever else the test gives. */
export function testTools(given: Partial<InternalTools> = {}): {
  readonly tools: InternalTools;
  readonly lines: Lines;
} {
  const lines: Lines = [];
  const log = createLog('debug', { write: (line) => void lines.push(JSON.parse(line) as Lines[number]) });
  const tools = {
    log,
    notices: new Notices(log),
    rates: new MemoryRates(),
    onClose: () => {},
    reads: () => 'nothing',
    ...given,
  };
  return { tools: tools as InternalTools, lines };
}

/** Sets a plugin up with options as an operator would write them. What the handler throws is a rejection, as in a pipeline. */
export async function handlerOf<Schema extends z.ZodType>(
  { spec }: { readonly spec: PluginSpec<Schema> },
  tools: InternalTools,
  options: z.input<Schema> | undefined = undefined,
): Promise<Handler> {
  const parsed = spec.options === undefined ? undefined : spec.options.parse(options ?? {});
  const handler = await spec.setup(parsed as z.output<Schema>, tools);
  return async (call, next) => handler(call, next as PluginNext);
}

/** The end of a pipeline in a test: remembers the calls that arrive and answers with these events. */
export function answering(...events: GatewayEvent[]): Next & { readonly calls: Call[] } {
  const calls: Call[] = [];
  const next: Next = async (call) => {
    calls.push(call);
    return of(...events);
  };
  return Object.assign(next, { calls });
}

/** All events of a stream, once it has completed. */
export function all(events: Observable<GatewayEvent>): Promise<GatewayEvent[]> {
  return firstValueFrom(events.pipe(toArray()));
}
