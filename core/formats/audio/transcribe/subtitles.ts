/** Encodes the segments of a transcript as SubRip (`srt`) and WebVTT (`vtt`) subtitles. */
import type { TranscriptSegment } from '../../../model/audio.ts';

/** Segments as SubRip. */
export function asSrt(segments: readonly TranscriptSegment[]): string {
  return segments
    .map(
      ({ start, end, text }, index) =>
        `${index + 1}\n${time(start, ',')} --> ${time(end, ',')}\n${linesOf(text)}\n`,
    )
    .join('\n');
}

/** Segments as WebVTT. */
export function asVtt(segments: readonly TranscriptSegment[]): string {
  const cues = segments.map(
    // An arrow inside a text would be read as the times of another cue.
    ({ start, end, text }) =>
      `${time(start, '.')} --> ${time(end, '.')}\n${linesOf(text).replaceAll('-->', '->')}\n`,
  );
  return ['WEBVTT\n', ...cues].join('\n');
}

/** Removes blank lines, because a blank line ends a cue. */
function linesOf(text: string): string {
  return text.trim().replaceAll(/\s*[\r\n]\s*/g, '\n');
}

function time(seconds: number, point: string): string {
  const whole = Math.max(0, Math.round(seconds * 1000));
  const two = (value: number): string => String(value).padStart(2, '0');
  const clock = [whole / 3_600_000, (whole / 60_000) % 60, (whole / 1000) % 60].map((part) =>
    two(Math.floor(part)),
  );
  return `${clock.join(':')}${point}${String(whole % 1000).padStart(3, '0')}`;
}
