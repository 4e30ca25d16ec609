import type { SpeakRequest } from '../../model/audio.ts';
import type { Codec, EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import { decodeWhole, SpeechBytesDecoder } from './speak/reply.ts';

/**
 * Makes a codec for speech of a provider that answers with the bytes of a file, in a format that no client uses.
 *
 * @example
 * const codecs = {
 *   speak: speechCodec('acme', ({ input }, { model }) => ({ path: '/speak', body: { model, text: input } })),
 * };
 */
export function speechCodec(
  format: string,
  encode: (request: SpeakRequest, target: EncodeTarget) => EncodedRequest,
): Codec<SpeakRequest> {
  return defineCodec<SpeakRequest>({
    format,
    operation: 'speak',
    path: '',
    encodeRequest(request, target) {
      const { headers, ...encoded } = encode(request, target);
      return { ...encoded, headers: { accept: '*/*', ...headers } };
    },
    decodeBytes: () => new SpeechBytesDecoder(),
    decodeWhole,
  });
}
