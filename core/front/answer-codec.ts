import type { Codec, Format } from '../sdk/format.ts';

/** Required members of a codec for responses of the gateway itself. */
type Answering = Pick<Codec, 'operation' | 'toleratesComments' | 'encodeWhole'> & Partial<Codec>;

/** Returns a codec for calls that the gateway answers itself and never sends to a channel. */
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
