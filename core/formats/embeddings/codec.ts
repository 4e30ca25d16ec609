import type { EmbedRequest } from '../../model/embed.ts';
import { estimateEmbed, joinEmbed } from '../_shared/embed.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeWhole, encodeWhole, usageTap } from './reply.ts';
import { decodeRequest, encodeRequest } from './request.ts';
import { formatName, path } from './wire.ts';

/**
 * Codec of the format `embeddings`, the one of `/v1/embeddings`. Use it for a provider whose responses have this format and whose requests
 * do not.
 *
 * @example
 * const codec: Codec<EmbedRequest> = { ...embedCodec, format: 'acme', encodeRequest };
 */
export const embedCodec: Codec<EmbedRequest> = defineCodec<EmbedRequest>({
  format: formatName,
  operation: 'embed',
  path,
  marks: {
    usage: ['"usage":{', '"usage": {'],
    terminal: [],
    reply: ['data'],
  },
  // Not every provider of this format supports base64, which the official clients request by default. So the type of the response is checked.
  passes: ({ encoding_format: encoding }) => encoding !== 'base64',
  decodeRequest,
  encodeRequest,
  decodeWhole,
  encodeWhole,
  usageTap,
  estimate: estimateEmbed,
  join: joinEmbed,
});
