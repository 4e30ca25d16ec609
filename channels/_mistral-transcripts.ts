import type { JsonObject } from 'sluice';
import {
  isObject,
  throwIfError,
  unusable,
  type EncodedRequest,
  type EncodeTarget,
  type TranscribeRequest,
  type TranscriptSegment,
} from 'sluice/internal';
import { secondsOf, transcriptCodec, wantsSpeakers, type Heard } from './_transcripts.ts';

/** The name of transcripts in Mistral's own words, which no client sends. */
export const transcriptFormat = 'mistral';

/** Replies that say when things were said. */
const timed: ReadonlySet<string> = new Set(['verbose_json', 'diarized_json', 'srt', 'vtt']);

/** https://docs.mistral.ai/api/endpoint/audio/transcriptions */
function encode(
  request: TranscribeRequest,
  { model, lose }: EncodeTarget,
  { context_bias: terms = [], ...own }: JsonObject,
): EncodedRequest {
  const { file, language, prompt, temperature, timestamps = [], replyFormat } = request;
  if (prompt !== undefined) lose('prompt');
  const times = timed.has(replyFormat);
  // Times of words have no place in its replies, and a language keeps it from telling any times.
  if (timestamps.includes('word')) lose('timestamp_granularities');
  if (times && language !== undefined) lose('language');
  const texts: JsonObject = {
    model,
    language: times ? undefined : language,
    temperature,
    timestamp_granularities: times ? 'segment' : undefined,
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

function decode(body: JsonObject): Heard {
  throwIfError(body);
  const { text, language, segments, usage } = body;
  if (typeof text !== 'string') throw unusable('sent JSON that is no transcript');
  const seconds = isObject(usage) ? usage.prompt_audio_seconds : undefined;
  return {
    text: text.trim(),
    language: typeof language === 'string' ? language : undefined,
    duration: typeof seconds === 'number' ? secondsOf(seconds) : undefined,
    segments: Array.isArray(segments) ? segments.flatMap(segmentIn) : [],
  };
}

function segmentIn(one: unknown): readonly TranscriptSegment[] {
  if (!isObject(one) || typeof one.text !== 'string') return [];
  const { text, start, end, speaker_id: speaker } = one;
  return [
    {
      start: secondsOf(start),
      end: secondsOf(end),
      text: text.trim(),
      ...(typeof speaker === 'string' ? { speaker } : {}),
    },
  ];
}

/** Transcripts by Voxtral. */
export const transcribe = transcriptCodec(transcriptFormat, encode, decode, ['context_bias', 'diarize']);
