import type { ChatRequest } from '../../model/chat.ts';
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeRequest, modelOf } from './request-in/index.ts';
import { ReplyDecoder } from './stream-in/index.ts';
import { encodeRequest, methodPath } from './request-out/index.ts';
import { ReplyEncoder } from './stream-out/index.ts';
import { endsStream } from './finish.ts';
import { wantsBytes } from './parts.ts';
import { patch } from './patch.ts';
import { places, settingPath } from './settings.ts';
import { usageTap } from './usage.ts';
import { decodeWhole, encodeWhole } from './whole.ts';
import { formatName, official } from './wire.ts';
import { words } from './words.ts';

/** Fields that mean something only to the account that holds the other half, and without which the answer would be another. */
const accountBound = ['cachedContent', 'continuationToken'];

/** generateContent and streamGenerateContent. */
export const chat: Codec<ChatRequest> = {
  format: formatName,
  operation: 'chat',
  upstreamFraming: 'sse',
  marks: {
    usage: ['"usageMetadata"'],
    terminal: ['"finishReason":', '"finishReason" :', '"blockReason":', '"blockReason" :'],
    model: 'modelVersion',
  },
  endsStream,
  toleratesComments: false,
  streamsAsJson: true,
  peek: (_body, params) => ({ model: modelOf(params), stream: params.stream === true }),
  validate: (body, params) => decodeRequest(body, params),
  outlines: true,
  writesMarks: true,
  clientFraming: (_body, params) => (params.stream === true ? (params.framing ?? 'ndjson') : 'none'),
  patch,
  passThrough: (model, stream) => methodPath(model, stream ? 'streamGenerateContent' : 'generateContent'),
  onlyNative,
  wantsBytes,
  decodeRequest,
  encodeRequest,
  decodeStream: () => new ReplyDecoder(),
  encodeStream: (context) => new ReplyEncoder(context),
  decodeWhole,
  encodeWhole,
  usageTap,
  settingPath,
  places,
  words,
};

function onlyNative(body: JsonObject): GatewayError | undefined {
  const request = official(body, 'request');
  const param = accountBound.find((field) => typeof request[field] === 'string' && request[field] !== '');
  if (param === undefined) return undefined;
  const message = `${param} needs a channel of the ${formatName} format.`;
  return new GatewayError('unsupported_parameter', message, { param });
}
