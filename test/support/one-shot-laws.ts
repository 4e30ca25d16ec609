import type { Codec, EncodedRequest, ReplyContext, RouteParams } from '../../core/sdk/format.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import type { GatewayRequest } from '../../core/model/request.ts';

/** A request through a codec and on to another; what was reported as lost comes beside it. */
export function encodedBy<R extends GatewayRequest>(
  from: Codec<R>,
  to: Codec<R>,
  body: JsonObject,
  params: RouteParams = {},
): { readonly encoded: EncodedRequest; readonly losses: readonly string[] } {
  const losses: string[] = [];
  const encoded = to.encodeRequest(from.validate(body, params), {
    model: String(body.model ?? params.model ?? 'm'),
    stream: false,
    traits: {},
    headers: {},
    unsupported: 'refuse',
    drop: (path) => losses.push(path),
  });
  return { encoded, losses };
}

/** Reads a request as the server does: throws what the client would be told. */
export function checked<R extends GatewayRequest>(
  codec: Codec<R>,
  body: JsonObject,
  params: RouteParams = {},
): R {
  codec.peek(body, params);
  return codec.validate(body, params);
}

/** The reply that a client gets for these events. */
export function replyTo<R extends GatewayRequest>(
  codec: Codec<R>,
  events: readonly GatewayEvent[],
  body: JsonObject,
  model = 'm',
): JsonObject {
  const context: ReplyContext = {
    model,
    body,
    requestId: 'req_1',
    created: 1_760_000_000,
    inputEstimate: 0,
    drop: () => {},
  };
  const encoder = codec.encodeWhole(context);
  for (const event of events) encoder.event(event);
  return encoder.end();
}

/** Law 1 for a request: read and written again it must be the same, unknown fields included, and nothing may be lost. */
export function thereAndBack<R extends GatewayRequest>(
  codec: Codec<R>,
  body: JsonObject,
  params: RouteParams = {},
): { readonly body: JsonObject; readonly losses: readonly string[] } {
  const { encoded, losses } = encodedBy(codec, codec, body, params);
  return { body: encoded.body, losses };
}
