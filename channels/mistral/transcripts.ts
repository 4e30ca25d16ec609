/** Codec for transcriptions by Mistral's Voxtral models. */
import { isObject, type GatewayEvent, type JsonObject } from 'sluice';
import {
  truncatedResponse,
  readFrame,
  throwIfError,
  frameType,
  unusableResponse,
  type EncodedRequest,
  type EncodeTarget,
  type Frame,
  type StreamDecoder,
  type TranscribeRequest,
  type TranscriptSegment,
} from 'sluice/channel-kit';
import {
  eventsOf,
  secondsOf,
  transcriptCodec,
  wantsSpeakers,
  type Transcript,
  type TranscribedWord,
} from '../_kit/media/transcripts.ts';

/** Name of the format, which no client sends. */
export const transcriptFormat = 'mistral';

/** Response formats with timestamps. */
const timed: ReadonlySet<string> = new Set(['verbose_json', 'diarized_json', 'srt', 'vtt']);

/** https://docs.mistral.ai/api/endpoint/audio/transcriptions */
function encode(
  request: TranscribeRequest,
  { model, stream, drop }: EncodeTarget,
  { context_bias: terms = [], ...own }: JsonObject,
): EncodedRequest {
  const { file, language, prompt, temperature, timestamps = [], replyFormat } = request;
  if (prompt !== undefined) drop('prompt');
  const times = timed.has(replyFormat);
  // A language keeps it from telling any times.
  if (times && language !== undefined) drop('language');
  // Mistral takes one granularity; the gateway makes segments from words.
  const granularity = timestamps.includes('word') && !stream ? 'word' : 'segment';
  if (timestamps.includes('word') && stream) drop('timestamp_granularities');
  const texts: JsonObject = {
    model,
    language: times ? undefined : language,
    temperature,
    timestamp_granularities: times ? granularity : undefined,
    stream: stream ? true : undefined,
    ...own,
    ...(wantsSpeakers(request) ? { diarize: true } : {}),
  };
  return {
    path: '/audio/transcriptions',
    body: {},
    form: [
      ...Object.entries(texts).flatMap(([name, value]) => field(name, value)),
      ...[terms].flat().flatMap((term) => field('context_bias', term)),
      { name: 'file', file },
    ],
  };
}

function field(name: string, value: unknown): readonly { readonly name: string; readonly value: string }[] {
  return value === undefined ? [] : [{ name, value: String(value) }];
}

function decode(body: JsonObject): Transcript {
  throwIfError(body);
  const { text, language, segments, usage } = body;
  if (typeof text !== 'string') throw unusableResponse('sent JSON that is not a transcript');
  const seconds = isObject(usage) ? usage.prompt_audio_seconds : undefined;
  const stretches = Array.isArray(segments) ? segments.filter(isSegment) : [];
  return {
    text: text.trim(),
    language: typeof language === 'string' ? language : undefined,
    duration: typeof seconds === 'number' ? secondsOf(seconds) : undefined,
    ...(areWords(stretches) ? { words: stretches.map(wordOf) } : { segments: stretches.map(segmentOf) }),
  };
}

/** Segment of a recording as Voxtral reports it. */
type Stretch = JsonObject & { readonly text: string };

function isSegment(one: unknown): one is Stretch {
  return isObject(one) && typeof one.text === 'string' && one.text.trim() !== '';
}

/** The mean length up to which stretches without a space are words, in letters. */
const longWord = 12;

/** Returns true for a list of words. Words take the place of segments where they were requested, without a marker. */
function areWords(stretches: readonly Stretch[]): boolean {
  const letters = stretches.reduce((sum, { text }) => sum + text.trim().length, 0);
  return (
    stretches.length > 1 &&
    letters <= stretches.length * longWord &&
    stretches.every(({ text }) => !/\s/.test(text.trim()))
  );
}

function wordOf({ text, start, end, speaker_id: speaker }: Stretch): TranscribedWord {
  return {
    word: text.trim(),
    before: /^\s*/.exec(text)?.[0] ?? '',
    start: secondsOf(start),
    end: secondsOf(end),
    ...(typeof speaker === 'string' ? { speaker } : {}),
  };
}

function segmentOf({ text, start, end, speaker_id: speaker }: Stretch): TranscriptSegment {
  return {
    start: secondsOf(start),
    end: secondsOf(end),
    text: text.trim(),
    ...(typeof speaker === 'string' ? { speaker } : {}),
  };
}

/**
 * Decodes a stream: deltas of the text, segments between them if timestamps were requested, and the whole text at the end.
 * https://docs.mistral.ai/api/endpoint/audio/transcriptions#operation-audio_api_v1_transcriptions_post_stream
 */
class VoxtralStream implements StreamDecoder {
  #segments = 0;
  #begun = false;
  #done = false;

  frame(frame: Frame): readonly GatewayEvent[] {
    if (frame.data.trim() === '[DONE]') return [];
    const body = readFrame(frame);
    switch (body.type) {
      case 'transcription.text.delta':
        return this.#delta(body);
      case 'transcription.segment':
        return isSegment(body) ? [this.#segment(segmentOf(body))] : [];
      case 'transcription.done':
        this.#done = true;
        return [
          ...(this.#begun ? [{ type: 'text-end', block: 0, choice: 0 } as const] : []),
          ...eventsOf(decode(body)),
        ];
      default:
        return [];
    }
  }

  end(): readonly GatewayEvent[] {
    if (!this.#done) throw truncatedResponse();
    return [];
  }

  #delta({ text }: JsonObject): readonly GatewayEvent[] {
    if (typeof text !== 'string') return [];
    const delta: GatewayEvent = { type: 'text-delta', block: 0, choice: 0, text };
    if (this.#begun) return [delta];
    this.#begun = true;
    return [{ type: 'text-start', block: 0, choice: 0 }, delta];
  }

  /** Returns a segment as the event that clients of the audio format expect. */
  #segment({ start, end, text, speaker }: TranscriptSegment): GatewayEvent {
    const id = `seg_${(this.#segments += 1)}`;
    const event = { type: 'transcript.text.segment', id, start, end, text };
    return { type: 'opaque', format: 'audio', value: speaker === undefined ? event : { ...event, speaker } };
  }
}

/** Transcripts by Voxtral. */
export const transcribe = transcriptCodec(transcriptFormat, encode, decode, {
  takes: ['context_bias', 'diarize'],
  upstreamFraming: 'sse',
  decodeStream: () => new VoxtralStream(),
  endsStream: (frame) => frameType(frame) === 'transcription.done',
});
