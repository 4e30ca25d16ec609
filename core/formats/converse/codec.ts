/** Codec of Converse and ConverseStream, and the members that it shares with the codec of CountTokens. */
import { GatewayError } from '../../sdk/errors.ts';
import type { ChatRequest, MediaBlock } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { given } from '../_shared/check.ts';
import { folded } from '../_shared/folded.ts';
import type { Codec } from '../../sdk/format.ts';
import { patch } from './patch.ts';
import { decodeRequest, modelOf } from './request-in/index.ts';
import { encodeRequest, modelPath } from './request-out/index.ts';
import { places, settingPath } from './settings.ts';
import { ConverseStreamDecoder } from './stream-in.ts';
import { ConverseStreamEncoder } from './stream-out.ts';
import { usageTap } from './usage.ts';
import { ConverseFold, decodeWhole } from './whole.ts';
import { formatName } from './wire.ts';
import { words } from './words.ts';

/** Members that the codecs of both operations share. */
export const base = {
  format: formatName,
  marks: { usage: ['"usage"'], terminal: ['messageStop'] },
  // The binary framing knows no comments; they would only mean something inside the gateway.
  toleratesComments: false,
  wantsBytes: ({ source }: MediaBlock) => source.kind === 'url',
  settingPath,
  places,
  // As with messages, of models that think by a budget or adaptively: these are Claude's.
  forcedTools: 'without-thinking',
  words,
  encodeRequest,
  writesMarks: true,
} as const;

/** Converse and ConverseStream. */
export const chat: Codec<ChatRequest> = {
  ...base,
  operation: 'chat',
  upstreamFraming: 'sse',
  endsStream: ({ event }) => event === 'messageStop',
  peek: (_body, params) => ({ model: modelOf(params), stream: params.stream === true }),
  validate: (body, params) => decodeRequest(body, params),
  clientFraming: () => 'event-stream',
  patch,
  passThrough: (model, stream) => ({ path: modelPath(model, stream ? 'converse-stream' : 'converse') }),
  onlyNative,
  decodeRequest: (body, params) => decodeRequest(body, params),
  singleChoice: true,
  decodeStream: () => new ConverseStreamDecoder(),
  encodeStream: (context) => new ConverseStreamEncoder(context),
  decodeWhole,
  encodeWhole: (context) => folded(new ConverseStreamEncoder(context), new ConverseFold()),
  usageTap,
};

/** Returns an error for requests that only a Converse provider can answer: with a guardrail, or with variables of a stored prompt. */
function onlyNative(body: JsonObject): GatewayError | undefined {
  const param = ['guardrailConfig', 'promptVariables'].find((field) => given(body[field]));
  if (param === undefined) return undefined;
  return new GatewayError('unsupported_parameter', `${param} needs a channel of the ${formatName} format.`, {
    param,
  });
}
