import type { Codec, Format } from '../formats/format.ts';
import type { JsonObject } from '../model/json.ts';

/** Writes the answer of a plugin's endpoint: the value of its one `result` event. */
export function endpointCodec(format: Format): Codec {
  const none = (): never => {
    throw new Error('An endpoint has no request for a channel.');
  };
  return {
    format: format.name,
    operation: 'state',
    upstreamFraming: 'none',
    marks: { usage: [], terminal: [], error: [] },
    toleratesComments: true,
    peek: none,
    validate: none,
    clientFraming: () => 'sse',
    patch: none,
    passThrough: none,
    decodeRequest: none,
    encodeRequest: none,
    decodeWhole: none,
    usageTap: () => ({ read: () => undefined }),
    settingPath: (name) => name,
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
  };
}
