/** Handles the endpoints of plugins: each request becomes a call that the plugin answers after the identify and admit stages. */
import type { Context } from 'koa';
import { Exchange } from '../call/exchange.ts';
import { requestBody, type RequestBody, type WholeEndpoint } from '../sdk/endpoint.ts';
import { accept } from './accept.ts';
import { bodyReader, checkJsonType, decompressing, readBytes } from './body.ts';
import { tooLarge } from './body-errors.ts';
import { parseJsonBody, withoutMark } from './json-body.ts';
import { BudgetShare } from './byte-budget.ts';
import type { Front } from './front.ts';
import { checkMemberNames } from '../sdk/member-names.ts';
import { matchedParams, queryOf, requestId, wireOf } from './wire.ts';
import type { Codec, Format } from '../sdk/format.ts';
import type { JsonObject } from '../model/json.ts';
import { answerCodec } from './answer-codec.ts';

/** Returns the codec for responses of plugins' endpoints: the body is the value of the one `result` event. */
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

/** Returns the handler of a plugin's endpoint. */
export function endpointRoute(front: Front, endpoint: WholeEndpoint): (ctx: Context) => void {
  const { gateway } = front;
  const formatOf = formatsOf(front, endpoint);
  return function routeEndpoint(ctx) {
    const wire = wireOf(ctx, front.clientAddress(ctx.req));
    const { format, codec } = formatOf(ctx);
    const exchange = new Exchange(requestId(), 'state', format, codec, wire);
    wire.body = {};
    if (endpoint.streams?.(wire.query) === true) {
      exchange.stream = true;
      exchange.framing = 'sse';
    }
    const body = bodyOf(ctx, front, exchange);
    if (endpoint.readsBody === true) exchange.values.set(requestBody, body);
    else
      exchange.values.set(bodyReader, async () => {
        wire.body = await body.json();
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

interface Answering {
  readonly format: Format;
  readonly codec: Codec;
}

/** Returns a function that selects the format of a request. The codec of each format is made once. */
function formatsOf(front: Front, { format: stated }: WholeEndpoint): (ctx: Context) => Answering {
  const made = new Map<string, Answering>();
  const named = (name: string): Answering => {
    let answering = made.get(name);
    if (answering === undefined) {
      const format = front.formatNamed(name);
      made.set(name, (answering = { format, codec: endpointCodec(format) }));
    }
    return answering;
  };
  if (typeof stated === 'function') return (ctx) => named(stated(ctx.req.headers, queryOf(ctx)));
  const only = named(stated);
  return () => only;
}

function bodyOf({ req }: Context, { gateway, parts }: Front, exchange: Exchange): RequestBody {
  const { limits } = gateway.settings;
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = req.headers;
  const announced = req.headers['content-length'];
  return {
    type,
    length: announced === undefined || encoding !== 'identity' ? undefined : Number(announced),
    async json() {
      const held = new BudgetShare(parts.overload.bodyBudget);
      exchange.hold(held);
      const bytes = withoutMark(await readBytes(req, limits.body, held));
      if (bytes.length === 0) return {};
      checkJsonType(req);
      exchange.wire.bytes = bytes;
      const body = parseJsonBody(bytes, limits);
      checkMemberNames(body);
      return body;
    },
    stream(limit) {
      if (Number(announced) > limit) throw tooLarge(limit);
      return decompressing(req);
    },
  };
}
