import { firstValueFrom, toArray, type Observable } from 'rxjs';
import { Exchange } from '../../core/call/exchange.ts';
import { firstView } from '../../core/call/view.ts';
import type { ChatRequest, ChatSettings } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import type { Call, Wire } from '../../core/sdk/call.ts';
import type { Codec, Format, Operation } from '../../core/sdk/format.ts';

/** Options of a call of a test; everything else has defaults. */
interface CallOptions {
  readonly operation?: Operation;
  readonly format?: string;
  readonly model?: string;
  readonly stream?: boolean;
  /** Fields of the body besides the model, which the format of these calls decodes unchanged. */
  readonly settings?: ChatSettings;
}

/**
 * A call as the front end makes it, for tests of what lies below plugins: in a format whose bodies are decoded requests, so that no real
 * one has a part in what they find. `exchange` ends it. Plugins are tested with `sluice/testing`.
 */
export function testCall(options: CallOptions = {}): { readonly call: Call; readonly exchange: Exchange } {
  const { operation = 'chat', model, stream = false, settings = {} } = options;
  const wire: Wire = {
    method: 'POST',
    path: '/v1/plain',
    query: new URLSearchParams(),
    headers: {},
    params: {},
    ip: '192.0.2.7',
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

/** All events of a stream, once it has completed. */
export function all(events: Observable<GatewayEvent>): Promise<GatewayEvent[]> {
  return firstValueFrom(events.pipe(toArray()));
}
