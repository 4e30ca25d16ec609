import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Codec, RouteParams, StreamDecoder, StreamEncoder } from '../../sdk/format.ts';
import { requiredModel } from '../_shared/check.ts';
import { streamError } from '../_shared/exceptions.ts';
import { upstreamError } from '../_shared/upstream-error/index.ts';
import { chatCodec } from '../messages/codec.ts';
import { bodyVersion, enclosed, name, opened } from './wire.ts';

/** Returns the body of the format inside, which names its model and whether it is to stream. */
function asMessages(body: JsonObject, { model, stream }: RouteParams): JsonObject {
  const { anthropic_version: _version, anthropic_beta: _beta, ...rest } = body;
  return { ...rest, model: requiredModel(model), stream: stream === true };
}

/** Adds the beta flags of the body. Formats without such flags report them as dropped. */
function withBetas(request: ChatRequest, { anthropic_beta: betas }: JsonObject): ChatRequest {
  if (betas === undefined) return request;
  return { ...request, extra: { ...request.extra, [name]: { anthropic_beta: betas } } };
}

function decode(body: JsonObject, params: RouteParams, how: 'validate' | 'decodeRequest'): ChatRequest {
  try {
    return withBetas(chatCodec[how](asMessages(body, params), params), body);
  } catch (error) {
    if (body.anthropic_version !== undefined || !(error instanceof GatewayError) || error.status !== 400)
      throw error;
    throw otherBody(error);
  }
}

/** Returns the error for a body of another maker. InvokeModel has a different body for each maker's models; only one of them states a version. */
function otherBody({ code, message, param }: GatewayError): GatewayError {
  const sentence = `InvokeModel takes the messages format alone here, for every model, with "anthropic_version": "${bodyVersion}". Chats with other bodies go through Converse, and embeddings and images through /v1/embeddings and /v1/images/generations. (${message})`;
  return new GatewayError(code, sentence, param === undefined ? {} : { param });
}

/** Messages in an envelope. */
export const chat: Codec<ChatRequest> = {
  ...chatCodec,
  format: name,
  // The model's data is in base64, so every frame has to be decoded.
  marks: { usage: ['"usage"', '"bytes"'], terminal: ['"bytes"'] },
  // The binary framing knows no comments.
  toleratesComments: false,
  endsStream: (frame) => {
    const inner = opened(frame);
    return inner !== undefined && chatCodec.endsStream?.(inner) === true;
  },
  peek: (_body, { model, stream }) => ({ model: requiredModel(model), stream: stream === true }),
  validate: (body, params) => decode(body, params, 'validate'),
  decodeRequest: (body, params) => decode(body, params, 'decodeRequest'),
  clientFraming: () => 'event-stream',
  patch: (body, { settings }, traits, drop) =>
    chatCodec.patch(body, settings === undefined ? {} : { settings }, traits, drop),
  passThrough: (model, stream) => ({ path: pathOf(model, stream) }),
  encodeRequest(request, target) {
    const { [name]: own, ...extra } = request.extra ?? {};
    const { headers: _headers, body, ...encoded } = chatCodec.encodeRequest({ ...request, extra }, target);
    const { model: _model, stream: _stream, ...rest } = body;
    return {
      ...encoded,
      path: pathOf(target.model, target.stream),
      body: { anthropic_version: bodyVersion, ...own, ...rest },
    };
  },
  decodeStream(traits) {
    const inner = chatCodec.decodeStream?.(traits);
    if (inner === undefined) throw new Error('The format inside has no stream.');
    const decoder: StreamDecoder = {
      frame(frame) {
        if (frame.event === 'error') throw upstreamError(200, frame.data);
        const content = opened(frame);
        return content === undefined ? [] : inner.frame(content);
      },
      end: () => inner.end(),
    };
    return decoder;
  },
  encodeStream(context) {
    const inner = chatCodec.encodeStream?.(context);
    if (inner === undefined) throw new Error('The format inside has no stream.');
    const encoder: StreamEncoder = {
      event: (event) => inner.event(event).flatMap(enclosed),
      end: () => inner.end().flatMap(enclosed),
      error: (error) => [{ event: 'error', json: streamError(error) }],
      keepAlive: () => inner.keepAlive().flatMap(enclosed),
    };
    return encoder;
  },
  usageTap() {
    const inner = chatCodec.usageTap();
    return { read: (data) => inner.read(opened({ data })?.data ?? data) };
  },
};

function pathOf(model: string, stream: boolean): string {
  return `/model/${encodeURIComponent(model)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`;
}
