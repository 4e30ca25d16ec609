import type { JsonObject } from '../../model/json.ts';
import type { RealtimeRequest } from '../../model/realtime.ts';
import { requiredModel } from '../_shared/check.ts';
import type { Codec } from '../../sdk/format.ts';
import { dial } from './tunnel/index.ts';
import { formatName } from './wire.ts';

/**
 * Expected usage of one response before anything of the conversation is known: input and output tokens, and for providers that charge by
 * time or message, one charged unit of these.
 */
const expected = { input: 4000, output: 4096, units: { seconds: 60, calls: 10 } } as const;

/** A session as a call: its body is the handshake. Its messages pass, and are nothing that a codec reads. */
export const realtimeCodec: Codec<RealtimeRequest> = {
  format: formatName,
  operation: 'realtime',
  upstreamFraming: 'none',
  toleratesComments: false,
  marks: { usage: [], terminal: [] },
  peek: (body) => ({ model: modelOf(body), stream: true }),
  validate: decode,
  clientFraming: () => 'none',
  patch: (body, { model }) => (model === undefined ? body : { ...body, model }),
  passThrough: (model, _stream, headers) => dial({ model }, model, headers),
  decodeRequest: decode,
  encodeRequest: (request, { model, headers }) => ({
    ...dial({ model }, model, headers),
    body: { model: request.model },
  }),
  estimate: () => expected,
  decodeWhole: noReply,
  encodeWhole: noReply,
  usageTap: () => ({ read: () => undefined }),
  settingPath: (name) => name,
};

function modelOf(body: JsonObject): string {
  const model = requiredModel(body.model);
  return model;
}

function decode(body: JsonObject): RealtimeRequest {
  return { operation: 'realtime', format: formatName, model: modelOf(body) };
}

function noReply(): never {
  throw new Error('A session has messages, but no response.');
}
