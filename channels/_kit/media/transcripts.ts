/** Builds transcription codecs for providers with an API of their own, and groups words with times into segments. */
import type { GatewayEvent, JsonObject } from 'sluice';
import {
  noUsage,
  defineCodec,
  type Codec,
  type EncodedRequest,
  type EncodeTarget,
  type TranscribeRequest,
  type TranscriptSegment,
} from 'sluice/channel-kit';
import { ownWords } from '../dialect/own-words.ts';

/** A word with its times, in seconds. */
export interface TranscribedWord {
  readonly word: string;
  /** Text before the word, where it is not a space. */
  readonly before?: string;
  readonly start: number;
  readonly end: number;
  readonly speaker?: string;
  /** Natural logarithm of the probability that the word is right, where the provider states one. */
  readonly logprob?: number;
}

/** Transcript of a provider: words, or segments where it states no words. */
export type Transcript = {
  readonly text: string;
  readonly language?: string | undefined;
  /** Duration in seconds, if the provider reports it. */
  readonly duration?: number | undefined;
} & ({ readonly words: readonly TranscribedWord[] } | { readonly segments: readonly TranscriptSegment[] });

/** Options of {@link transcriptCodec}: client fields that the provider takes, and how it streams. */
export interface Transcribing extends Pick<Codec<TranscribeRequest>, 'decodeStream' | 'endsStream'> {
  readonly takes?: readonly string[];
  readonly upstreamFraming?: Codec['upstreamFraming'];
}

/**
 * Returns the codec. `encode` gets the client's fields that the provider `takes`. `decode` throws a GatewayError where a response is no
 * transcript.
 */
export function transcriptCodec(
  format: string,
  encode: (request: TranscribeRequest, target: EncodeTarget, own: JsonObject) => EncodedRequest,
  decode: (body: JsonObject) => Transcript,
  { takes = [], ...stream }: Transcribing = {},
): Codec<TranscribeRequest> {
  return defineCodec<TranscribeRequest>({
    ...stream,
    format,
    operation: 'transcribe',
    path: '',
    encodeRequest(request, target) {
      return encode(request, target, ownWords(request.extra, takes, target.drop));
    },
    decodeWhole: (body) => eventsOf(decode(body)),
  });
}

/** Returns true when the client wants to know who speaks. */
export function wantsSpeakers({ replyFormat }: TranscribeRequest): boolean {
  return replyFormat === 'diarized_json';
}

/** Returns the events of a transcript. */
export function eventsOf({ text, language, duration, ...parts }: Transcript): readonly GatewayEvent[] {
  const segments = 'words' in parts ? segmentsOf(parts.words) : parts.segments;
  const last = duration ?? segments.at(-1)?.end;
  return [
    {
      type: 'result',
      value: {
        text,
        ...(language === undefined ? {} : { language }),
        ...(last === undefined ? {} : { duration: last }),
        segments: segments.length === 0 && text !== '' ? [{ start: 0, end: last ?? 0, text }] : segments,
        ...('words' in parts
          ? { words: parts.words.map(({ word, start, end }) => ({ word, start, end })) }
          : {}),
      },
    },
    ...(duration === undefined
      ? []
      : [{ type: 'usage', usage: { ...noUsage, units: { seconds: duration } } } as const]),
  ];
}

/** Maximum pause in a segment and maximum duration of a segment, in seconds. A segment is a sentence, or a part of one, of one speaker. */
const longestRest = 1.5;
const longestSegment = 12;
const sentenceEnd = /[.!?…。！？]["'”’)\]]*$/u;

function segmentsOf(words: readonly TranscribedWord[]): readonly TranscriptSegment[] {
  const segments: TranscriptSegment[] = [];
  let begun: TranscribedWord[] = [];
  const close = (): void => {
    const [first] = begun;
    const last = begun.at(-1);
    if (first === undefined || last === undefined) return;
    segments.push({
      start: first.start,
      end: last.end,
      text: begun
        .map(({ word, before = ' ' }) => before + word)
        .join('')
        .trim(),
      ...(first.speaker === undefined ? {} : { speaker: first.speaker }),
      ...sureness(begun),
    });
    begun = [];
  };
  for (const word of words) {
    const [first] = begun;
    const last = begun.at(-1);
    const breaks =
      first !== undefined &&
      last !== undefined &&
      (first.speaker !== word.speaker ||
        word.start - last.end > longestRest ||
        word.end - first.start > longestSegment ||
        sentenceEnd.test(last.word));
    if (breaks) close();
    begun.push(word);
  }
  close();
  return segments;
}

/** Returns the mean of the words that have a logarithm, or nothing where none has one. */
function sureness(words: readonly TranscribedWord[]): { readonly logprob?: number } {
  const known = words.flatMap(({ logprob }) => logprob ?? []);
  const sum = known.reduce((total, one) => total + one, 0);
  return known.length === 0 ? {} : { logprob: sum / known.length };
}

/** Minimum log probability. The logarithm of probability 0 is minus infinity, which JSON cannot represent. */
const leastLogprob = -100;

/** Parses a log probability; undefined if it is invalid. */
export function logprobIn(value: unknown): { readonly logprob?: number } {
  if (typeof value !== 'number' || Number.isNaN(value) || value > 0) return {};
  return { logprob: Math.max(leastLogprob, value) };
}

/** Parses a probability between 0 and 1, and returns its logarithm; undefined if it is invalid. */
export function confidenceIn(value: unknown): { readonly logprob?: number } {
  return typeof value === 'number' && value >= 0 && value <= 1 ? logprobIn(Math.log(value)) : {};
}

/** Parses a time in seconds; 0 if it is invalid. */
export function secondsOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
}
