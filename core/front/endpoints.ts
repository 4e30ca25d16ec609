import type { Codec, Format } from '../sdk/format.ts';
import type { JsonObject } from '../model/json.ts';
import { answerCodec } from './answer-codec.ts';

/** Writes the answer of a plugin's endpoint: the value of its one `result` event. */
export function endpointCodec(format: Format): Codec {
  return answerCodec(format, {
    operation: 'state',
    toleratesComments: true,
    clientFraming: () => 'sse',
    encodeStream: () => ({
      event: () => [],
      end: () => [],
      error: (error) => [{ event: 'error', json: format.errorReply(error, '').body }],
      keepAlive: () => [],
    }),
    encodeWhole() {
      let body: JsonObject = {};
      return {
        event(event) {
          if (event.type === 'result') body = event.value as JsonObject;
        },
        end: () => body,
      };
    },
  });
}
