import type { Codec, Format } from '../sdk/format.ts';

/** What a codec that only answers must say for itself. */
type Answering = Pick<Codec, 'operation' | 'toleratesComments' | 'encodeWhole'> & Partial<Codec>;

/** The codec of what the gateway answers by itself: nothing of it is ever sent to a channel. */
export function answerCodec(format: Format, answering: Answering): Codec {
  const none = (): never => {
    throw new Error(`${answering.operation} has no request for a channel.`);
  };
  return {
    format: format.name,
    upstreamFraming: 'none',
    marks: { usage: [], terminal: [] },
    peek: none,
    validate: none,
    clientFraming: () => 'none',
    patch: none,
    passThrough: none,
    decodeRequest: none,
    encodeRequest: none,
    decodeWhole: none,
    usageTap: () => ({ read: () => undefined }),
    settingPath: (name) => name,
    ...answering,
  };
}
