/** The audio format: transcripts, translations and speech under `/v1/audio`. */
import type { SpeakRequest, TranscribeRequest } from '../../model/audio.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { requiredModel } from '../_shared/check.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import { frameType } from '../_shared/stream-frames.ts';
import type { Codec, Format } from '../../sdk/format.ts';
import { decodeSpeech, encodeSpeech, expectedOfSpeech, passesSpeech } from './speak/request.ts';
import * as speech from './speak/reply.ts';
import * as transcript from './transcribe/reply.ts';
import {
  decodeTranscript,
  encodeTranscript,
  expectedOfRecording,
  passesTranscript,
  peekTranscript,
  wantsPlain,
} from './transcribe/request.ts';
import { TranscriptStreamDecoder, TranscriptStreamEncoder } from './transcribe/stream.ts';
import { formatName, paths } from './wire.ts';

function transcribing(operation: TranscribeRequest['operation']): Codec<TranscribeRequest> {
  return defineCodec<TranscribeRequest>({
    format: formatName,
    operation,
    path: paths[operation],
    upstreamFraming: 'sse',
    marks: {
      usage: ['"usage"', '"duration"'],
      terminal: ['transcript.text.done'],
      reply: ['text'],
    },
    endsStream: (frame) => frameType(frame) === 'transcript.text.done',
    peek: peekTranscript,
    clientFraming: () => 'sse',
    passes: passesTranscript,
    replyKind: (body) => (wantsPlain(body) ? 'text' : undefined),
    decodeRequest: decodeTranscript(operation),
    encodeRequest: encodeTranscript,
    decodeStream: () => new TranscriptStreamDecoder(),
    encodeStream: () => new TranscriptStreamEncoder(),
    decodeWhole: transcript.decodeWhole,
    encodeWhole: transcript.encodeWhole(operation),
    usageTap: transcript.usageTap,
    estimate: expectedOfRecording,
  });
}

const speak: Codec<SpeakRequest> = defineCodec<SpeakRequest>({
  format: formatName,
  operation: 'speak',
  path: paths.speak,
  upstreamFraming: 'sse',
  marks: { usage: ['"usage"'], terminal: ['speech.audio.done'] },
  endsStream: (frame) => frameType(frame) === 'speech.audio.done',
  peek: ({ model, stream_format: framing }) => ({
    model: requiredModel(model),
    stream: framing === 'sse',
  }),
  clientFraming: () => 'sse',
  passes: passesSpeech,
  replyKind: () => 'bytes',
  decodeRequest: decodeSpeech,
  encodeRequest: encodeSpeech,
  decodeBytes: () => new speech.SpeechBytesDecoder(),
  decodeStream: () => new speech.SpeechStreamDecoder(),
  encodeStream: () => new speech.SpeechStreamEncoder(),
  decodeWhole: speech.decodeWhole,
  encodeWhole: speech.encodeWhole,
  usageTap: speech.usageTap,
  estimate: expectedOfSpeech,
});

const audio: Format = {
  name: formatName,
  routes: [
    {
      method: 'POST',
      path: '/v1/audio/transcriptions',
      operation: 'transcribe',
      accepts: ['form'],
      files: 'audio',
    },
    {
      method: 'POST',
      path: '/v1/audio/translations',
      operation: 'translate-audio',
      accepts: ['form'],
      files: 'audio',
    },
    { method: 'POST', path: '/v1/audio/speech', operation: 'speak' },
  ],
  codecs: {
    transcribe: transcribing('transcribe'),
    'translate-audio': transcribing('translate-audio'),
    speak,
  },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** Recordings written down, and text spoken: `/v1/audio/…`. */
export default audio;
