/** Replies with a transcript: decodes a provider's JSON, and encodes `json`, `verbose_json`, `diarized_json`, `text`, `srt` and `vtt`. */
import type { Transcript, TranscriptSegment } from '../../../model/audio.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import { parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { Usage } from '../../../model/usage.ts';
import { throwIfError, unusableResponse } from '../../_shared/upstream-error/index.ts';
import { extraOf } from '../../_shared/spelling.ts';
import { noUsage, readTokenUsage } from '../../_shared/usage.ts';
import type { PlainReply, ReplyContext, UsageTap, WholeEncoder } from '../../../sdk/format.ts';
import { diarizedSegments, verboseSegments } from './segments.ts';
import { asSrt, asVtt } from './subtitles.ts';
import { formatName, plainTranscripts } from '../wire.ts';

/** Returns a provider's JSON as events. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { text, language, duration, segments, words, logprobs, usage, task: _, ...rest } = body;
  if (typeof text !== 'string') {
    throw unusableResponse('sent JSON that is not a transcript');
  }
  const seconds = secondsIn(duration);
  const transcript: Transcript = {
    text,
    ...(typeof language === 'string' ? { language } : {}),
    ...(seconds === undefined ? {} : { duration: seconds }),
    ...(Array.isArray(segments)
      ? { segments: (segments as readonly JsonValue[]).filter(isObject).map(readSegment) }
      : {}),
    ...(Array.isArray(words) ? { words: (words as readonly JsonValue[]).filter(isWord) } : {}),
    ...(Array.isArray(logprobs) ? { logprobs: (logprobs as readonly JsonValue[]).filter(isObject) } : {}),
    ...extraOf(formatName, rest),
  };
  const events: GatewayEvent[] = [{ type: 'result', value: transcript }];
  const used = isObject(usage) ? readUsage(usage) : usageOfDuration(transcript.duration);
  if (used !== undefined) events.push({ type: 'usage', usage: used });
  return events;
}

type Word = NonNullable<Transcript['words']>[number] & JsonObject;

function isWord(value: JsonValue): value is Word {
  return (
    isObject(value) &&
    typeof value.word === 'string' &&
    Number.isFinite(value.start) &&
    Number.isFinite(value.end)
  );
}

/** Maximum duration and time that is accepted, in seconds: some thirty years. */
const longest = 1e9;

/** Seconds as a number or, in older replies, as text; undefined for what is no time. */
function secondsIn(value: JsonValue | undefined): number | undefined {
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof seconds === 'number' && seconds >= 0 && seconds <= longest ? seconds : undefined;
}

/** Decodes a time of a segment; 0 if there is none. */
function timeIn(value: JsonValue | undefined): number {
  const seconds = value === undefined || value === null ? 0 : secondsIn(value);
  if (seconds !== undefined) return seconds;
  throw unusableResponse('sent a transcript with invalid times');
}

function readSegment({ start, end, text, speaker, ...rest }: JsonObject): TranscriptSegment {
  return {
    start: timeIn(start),
    end: timeIn(end),
    text: typeof text === 'string' ? text : '',
    ...(typeof speaker === 'string' ? { speaker } : {}),
    ...extraOf(formatName, rest),
  };
}

/** Returns the usage by tokens, or by the length of the recording. */
export function readUsage(usage: JsonObject): Usage {
  const seconds = secondsIn(usage.seconds);
  const known = seconds === undefined ? {} : { units: { seconds } };
  return { ...readTokenUsage(usage, formatName), ...known };
}

function usageOfDuration(duration: number | undefined): Usage | undefined {
  return duration === undefined ? undefined : { ...noUsage, units: { seconds: duration } };
}

/** Returns the usage object for a client. */
export function writeUsage({ format, raw, input, output, units }: Usage): JsonObject {
  if (format === formatName && raw !== undefined) return raw;
  if (input === 0 && output === 0 && units?.seconds !== undefined)
    return { type: 'duration', seconds: units.seconds };
  return { type: 'tokens', input_tokens: input, output_tokens: output, total_tokens: input + output };
}

/** Encodes a transcript in the requested format. */
export function encodeWhole(
  operation: 'transcribe' | 'translate-audio',
): (context: ReplyContext) => WholeEncoder {
  return ({ body }) => {
    const format = typeof body.response_format === 'string' ? body.response_format : 'json';
    let transcript: Transcript | undefined;
    let usage: Usage | undefined;
    const known = (): Transcript => {
      if (transcript === undefined) throw unusableResponse('gave no transcript');
      return transcript;
    };
    return {
      event(event) {
        if (event.type === 'result') transcript = event.value as Transcript;
        if (event.type === 'usage') usage = event.usage;
      },
      plain: () => plainReply(format, known()),
      end: () => jsonReply(format, operation, known(), usage, body),
    };
  };
}

function plainReply(format: string, transcript: Transcript): PlainReply | undefined {
  const contentType = plainTranscripts[format];
  if (contentType === undefined) return undefined;
  if (format === 'text') return { contentType, bytes: Buffer.from(`${transcript.text}\n`) };
  const { segments } = transcript;
  if (segments === undefined) {
    throw unusableResponse('returned a transcript without times');
  }
  return { contentType, bytes: Buffer.from(format === 'srt' ? asSrt(segments) : asVtt(segments)) };
}

function jsonReply(
  format: string,
  operation: 'transcribe' | 'translate-audio',
  transcript: Transcript,
  usage: Usage | undefined,
  request: JsonObject,
): JsonObject {
  const { text, segments, words, logprobs, extra } = transcript;
  const usageFields = usage === undefined ? {} : { usage: writeUsage(usage) };
  const own = extra?.[formatName] ?? {};
  if (format === 'json')
    return { text, ...(logprobs === undefined ? {} : { logprobs }), ...own, ...usageFields };
  const times = timesOf(request.timestamp_granularities);
  const isDiarized = format === 'diarized_json';
  return {
    task: operation === 'transcribe' ? 'transcribe' : 'translate',
    ...(isDiarized ? {} : { language: languageOf(operation, transcript, request) }),
    duration: transcript.duration ?? segments?.at(-1)?.end ?? words?.at(-1)?.end ?? 0,
    text,
    ...(isDiarized ? { segments: diarizedSegments(segments ?? []) } : {}),
    ...(segments !== undefined && !isDiarized && times.has('segment')
      ? { segments: verboseSegments(segments, temperatureOf(request.temperature)) }
      : {}),
    ...(words !== undefined && !isDiarized && times.has('word')
      ? { words: words as unknown as readonly JsonObject[] }
      : {}),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...own,
    ...usageFields,
  };
}

/** Returns the requested granularities of timestamps. Default: segments. */
function timesOf(requested: JsonValue | undefined): ReadonlySet<JsonValue> {
  const named = [requested ?? []].flat();
  return new Set(named.length === 0 ? ['segment'] : named);
}

/** Returns the language that the provider detected, else the one that the client named, else the code for an undetermined one (ISO 639-2). */
function languageOf(operation: string, { language }: Transcript, request: JsonObject): string {
  if (language !== undefined) return language;
  if (operation === 'translate-audio') return 'english';
  return typeof request.language === 'string' && request.language !== '' ? request.language : 'und';
}

function temperatureOf(requested: JsonValue | undefined): number {
  const temperature = Number(requested ?? 0);
  return Number.isFinite(temperature) ? temperature : 0;
}

/** Reads usage of a reply or a stream that passes through. */
export function usageTap(): UsageTap {
  return {
    read(data) {
      const body = parseObject(data);
      if (isObject(body?.usage)) return readUsage(body.usage);
      return usageOfDuration(secondsIn(body?.duration));
    },
  };
}
