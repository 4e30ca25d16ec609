import type { Context } from 'koa';
import { Exchange } from '../call/exchange.ts';
import type { Endpoint } from '../sdk/define.ts';
import { accept } from './accept.ts';
import { bodyReader, BudgetShare, checkJsonType, parseJsonBody, readBytes, withoutMark } from './body.ts';
import type { Front } from './front.ts';
import { matchedParams, requestId, wireOf } from './wire.ts';
import type { Codec, Format } from '../sdk/format.ts';
import type { JsonObject } from '../model/json.ts';
import { answerCodec } from './answer-codec.ts';

/** Writes the answer of a plugin's endpoint: the value of its one `result` event. */
export function endpointCodec(format: Format): Codec {
  return answerCodec(format, {
    operation: 'state',
    toleratesComments: true,
    clientFraming: () => 'sse',
    encodeStream: () => ({
      event: () => [],
      end: () => [],
      error: (error) => [{ event: 'error', json: format.errorReply(error, '').body }],
      keepAlive: () => [],
    }),
    encodeWhole() {
      let body: JsonObject = {};
      return {
        event(event) {
          if (event.type === 'result') body = event.value as JsonObject;
        },
        end: () => body,
      };
    },
  });
}

/** The handler of a plugin's endpoint: a call that its plugin answers, once its caller is known and admitted. */
export function endpointRoute(front: Front, endpoint: Endpoint): (ctx: Context) => void {
  const { gateway, parts } = front;
  const { limits } = gateway.settings;
  const format = front.formatNamed(endpoint.format);
  const codec = endpointCodec(format);
  return function routeEndpoint(ctx) {
    const wire = wireOf(ctx, front.clientAddress(ctx.req));
    const exchange = new Exchange(requestId(), 'state', format, codec, wire);
    wire.body = {};
    if (endpoint.streams?.(wire.query) === true) {
      exchange.stream = true;
      exchange.framing = 'sse';
    }
    exchange.values.set(bodyReader, async () => {
      const held = new BudgetShare(parts.overload.bodyBudget);
      exchange.hold(held);
      const bytes = withoutMark(await readBytes(ctx.req, limits.body, held));
      if (bytes.length === 0) return;
      checkJsonType(ctx.req);
      wire.bytes = bytes;
      wire.body = parseJsonBody(bytes, limits);
    });
    const matched = matchedParams(ctx);
    accept(
      ctx,
      front,
      exchange,
      gateway.identified((call) => endpoint.handle(call, matched)),
    );
  };
}
