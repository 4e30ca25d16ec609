import { randomUUID } from 'node:crypto';
import type { Observable } from 'rxjs';
import { Exchange, firstView, type Call } from '../call/call.ts';
import type { Next } from '../sdk/define.ts';
import type { Format } from '../sdk/format.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import { addressed, type Target } from './target.ts';

/** A call that nobody outside has made. Whoever asked for it ends it. */
export interface DirectCall {
  readonly call: Call;
  /** Sends it; the reply comes as decoded events. Rejects as an attempt does. Once. */
  send(): Promise<Observable<GatewayEvent>>;
  /** Lets go of everything, up to the provider's socket. */
  end(): void;
}

/**
 * Makes a chat call to one target, also of a channel that is switched off. It meets the translate stage alone: no key, no limit, no
 * record. Throws GatewayError when the body is not a request of the format.
 */
export type DirectCalls = (format: string, body: JsonObject, target: Target) => DirectCall;

/** Binds direct calls to the gateway's formats and to its translate stage. */
export function createDirectCalls(
  formatNamed: (name: string) => Format | undefined,
  translate: Next,
): DirectCalls {
  return (name, body, target) => {
    const format = formatNamed(name);
    const codec = format?.codecs.chat;
    if (format === undefined || codec === undefined) throw new Error(`No format "${name}" has chats.`);
    const exchange = new Exchange(`req_${randomUUID().replaceAll('-', '')}`, 'chat', format, codec, {
      method: 'POST',
      path: format.routes.find(({ operation }) => operation === 'chat')?.path ?? '/',
      query: new URLSearchParams(),
      headers: { 'content-type': 'application/json' },
      params: {},
      ip: '127.0.0.1',
      bytes: Buffer.alloc(0),
      body: undefined,
    });
    exchange.understand(Buffer.from(JSON.stringify(body)), body);
    exchange.decoded = codec.validate(body, {});
    const call = firstView(exchange).with({ decoded: true });
    return {
      call,
      send: () => translate(addressed(call, target)),
      end: () => exchange.end(),
    };
  };
}
