import type { EmbedRequest } from '../../model/embed.ts';
import { expectedOfInputs, joinVectors } from '../_shared/embed.ts';
import { oneShot } from '../_shared/one-shot.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeWhole, encodeWhole, usageTap } from './reply.ts';
import { decodeRequest, encodeRequest } from './request.ts';
import { formatName, path } from './wire.ts';

/** Embeddings in and out. Channels whose shape is nearly this one put theirs together from it. */
export const embedCodec: Codec<EmbedRequest> = oneShot<EmbedRequest>({
  format: formatName,
  operation: 'embed',
  path,
  marks: {
    usage: ['"usage":{', '"usage": {'],
    terminal: [],
    reply: ['data'],
  },
  // Not every provider of this shape knows base64, which the official clients ask for by themselves: what comes is looked at then.
  passes: ({ encoding_format: encoding }) => encoding !== 'base64',
  decodeRequest,
  encodeRequest,
  decodeWhole,
  encodeWhole,
  usageTap,
  estimate: expectedOfInputs,
  join: joinVectors,
});
