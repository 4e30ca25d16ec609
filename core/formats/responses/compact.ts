/** Compaction of Responses: `/v1/responses/compact`. */
import type { ChatRequest } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { optionalBoolean } from '../_shared/check.ts';
import type { Codec, EncodedRequest, EncodeTarget, ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { responsesCodec } from './codec.ts';
import { unusableResponse, throwIfError } from '../_shared/upstream-error/index.ts';

const path = '/responses/compact';

/**
 * Compaction: the response is an object of its own, the value of a `result` event. If the client requests a response over the compacted
 * context (`stream: true` or `generate: true`), the events are those of an ordinary response and are encoded as one.
 */
export const compactCodec: Codec<ChatRequest> = {
  ...responsesCodec,
  operation: 'compact',
  upstreamFraming: 'none',
  marks: { usage: responsesCodec.marks.usage, terminal: [] },
  peek: (body, params) => ({
    ...responsesCodec.peek(body, params),
    stream: optionalBoolean(body.stream, 'stream') === true,
  }),
  validate(body, params) {
    optionalBoolean(body.stream, 'stream');
    optionalBoolean(body.generate, 'generate');
    return responsesCodec.validate(body, params);
  },
  passThrough: (model, _stream, headers) => ({ ...responsesCodec.passThrough(model, false, headers), path }),
  encodeRequest,
  decodeWhole,
  encodeWhole,
};

function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const encoded = responsesCodec.encodeRequest(request, { ...target, stream: false });
  const { stream: _stream, generate: _generate, store: _store, ...body } = encoded.body;
  return { ...encoded, path, body };
}

function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  if (!Array.isArray(body.output)) throw unusableResponse('sent JSON that is not a compaction');
  const result: GatewayEvent = { type: 'result', value: body };
  const usage = responsesCodec.usageTap().read(JSON.stringify({ usage: body.usage }));
  return usage === undefined ? [result] : [result, { type: 'usage', usage }];
}

/** Returns the object of a compaction, or the response that was generated over one. */
function encodeWhole(context: ReplyContext): WholeEncoder {
  const generated = responsesCodec.encodeWhole(context);
  let compaction: JsonObject | undefined;
  return {
    event(event) {
      if (event.type === 'result' && isObject(event.value)) compaction = event.value;
      else generated.event(event);
    },
    end: () => compaction ?? generated.end(),
  };
}
