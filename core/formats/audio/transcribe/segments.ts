/** Encodes the segments of a transcript for `verbose_json` and `diarized_json`, with the fields that the official types require. */
import { deflateSync } from 'node:zlib';
import type { TranscriptSegment } from '../../../model/audio.ts';
import type { JsonObject } from '../../../model/json.ts';
import { formatName } from '../wire.ts';

/**
 * Seconds of one window. Whisper, whose fields these are, hears so much at a time and states compression and offset of a whole window:
 * https://github.com/openai/whisper/blob/main/whisper/transcribe.py
 */
const windowSeconds = 30;

/** Frames that Whisper makes of a second; `seek` counts them. */
const framesPerSecond = 100;

/**
 * Writes segments of `verbose_json` with all members that the official type requires. Members that the provider sent are kept. Of the others
 * `avg_logprob` is the mean of the words' probabilities (0 where the provider states none), `compression_ratio` is computed of the text as
 * Whisper does, `no_speech_prob` is 0 because the provider found words, and `tokens` is empty because no provider sends them.
 */
export function verboseSegments(
  segments: readonly TranscriptSegment[],
  temperature: number,
): readonly JsonObject[] {
  const ratios = compressionRatios(segments);
  return segments.map((segment, index) => {
    const { start, end, text, speaker, logprob = 0, extra } = segment;
    return {
      id: index,
      seek: windowOf(segment) * windowSeconds * framesPerSecond,
      tokens: [],
      temperature,
      avg_logprob: logprob,
      compression_ratio: ratios.get(windowOf(segment)) ?? 1,
      no_speech_prob: 0,
      ...extra?.[formatName],
      start,
      end,
      text,
      ...(speaker === undefined ? {} : { speaker }),
    };
  });
}

/** Writes segments of `diarized_json`. If the provider names no speakers, all segments get the format's first label. */
export function diarizedSegments(segments: readonly TranscriptSegment[]): readonly JsonObject[] {
  return segments.map(({ start, end, text, speaker = 'A', extra }, index) => ({
    id: `seg_${index + 1}`,
    type: 'transcript.text.segment',
    ...extra?.[formatName],
    start,
    end,
    text,
    speaker,
  }));
}

function windowOf({ start }: TranscriptSegment): number {
  return Math.floor(start / windowSeconds);
}

/** Returns by window how much smaller its text becomes when it is compressed: bytes of the text by bytes of zlib's output. */
function compressionRatios(segments: readonly TranscriptSegment[]): ReadonlyMap<number, number> {
  const texts = new Map<number, string[]>();
  for (const segment of segments) {
    // Whole segments of a provider that speaks this format bring their own.
    if (typeof segment.extra?.[formatName]?.compression_ratio === 'number') continue;
    const window = texts.get(windowOf(segment));
    if (window === undefined) texts.set(windowOf(segment), [segment.text]);
    else window.push(segment.text);
  }
  return new Map(
    [...texts].map(([window, parts]) => {
      const bytes = Buffer.from(parts.join(' '));
      return [window, bytes.length === 0 ? 1 : bytes.length / deflateSync(bytes).length];
    }),
  );
}
