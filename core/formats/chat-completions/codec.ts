import { headersFor } from '../_openai/headers.ts';
import type { ChatRequest } from '../../model/chat.ts';
import { completions } from '../_openai/codec.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeRequest } from './request-in/index.ts';
import { ChatStreamDecoder } from './stream-in/index.ts';
import { wantsBytes } from './request-out/parts.ts';
import { chatPath, encodeRequest } from './request-out/index.ts';
import { ChatStreamEncoder } from './stream-out/index.ts';
import { patch } from './patch.ts';
import { places, settingPath } from './settings.ts';
import { usageTap } from './usage.ts';
import { samplingConflict, validate } from './validate.ts';
import { decodeWhole, encodeWhole } from './whole/index.ts';
import { formatName } from './wire.ts';
import { words } from './words.ts';

/**
 * Codec of chats in chat completions. A channel spreads it into a codec of its own, whose `format` has another name.
 *
 * @example
 * const codec: Codec<ChatRequest> = {
 *   ...chatCodec,
 *   format: 'acme-chat',
 *   encodeRequest(request, target) {
 *     const encoded = chatCodec.encodeRequest(request, target);
 *     return { ...encoded, path: '/chat', body: { ...encoded.body, safe_mode: false } };
 *   },
 * };
 */
export const chatCodec: Codec<ChatRequest> = {
  format: formatName,
  operation: 'chat',
  ...completions,
  validate,
  outlines: true,
  writesMarks: true,
  samplingConflict,
  patch,
  passThrough: (_model, _stream, headers) => ({ path: chatPath, ...headersFor(headers) }),
  wantsBytes,
  decodeRequest,
  encodeRequest,
  decodeStream: (traits) => new ChatStreamDecoder(traits),
  encodeStream: (context) => new ChatStreamEncoder(context),
  decodeWhole,
  encodeWhole,
  usageTap,
  settingPath,
  places,
  words,
};
