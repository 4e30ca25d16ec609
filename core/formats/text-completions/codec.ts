import type { ChatRequest } from '../../model/chat.ts';
import { completions } from '../_openai/codec.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeRequest } from './request-in.ts';
import { TextStreamDecoder } from './stream-in.ts';
import { encodeRequest } from './request-out.ts';
import { TextStreamEncoder } from './stream-out.ts';
import { onlyNative, validate } from './validate.ts';
import { patch } from './patch.ts';
import { places, settingPath } from './settings.ts';
import { usageTap } from './usage.ts';
import { decodeWhole, encodeWhole } from './whole.ts';
import { completionsPath, formatName } from './wire.ts';

/** Text completions: a chat of one user turn, as far as the rest of the gateway is concerned. */
export const chatCodec: Codec<ChatRequest> = {
  format: formatName,
  operation: 'chat',
  ...completions,
  validate,
  patch,
  passThrough: () => ({ path: completionsPath }),
  onlyNative,
  // The format does not support media.
  wantsBytes: () => false,
  decodeRequest,
  encodeRequest,
  decodeStream: () => new TextStreamDecoder(),
  encodeStream: (context) => new TextStreamEncoder(context),
  decodeWhole,
  encodeWhole,
  usageTap,
  settingPath,
  places,
};
