/** Requests and results of transcription and speech, in neutral form. */
import type { Extra } from './extra.ts';
import type { JsonObject } from './json.ts';
import type { Upload } from './form.ts';

/**
 * A request to transcribe a recording, in its own language or in English.
 *
 * @example
 * const encodeRequest = ({ file, language }: TranscribeRequest) => ({ path: '/transcripts', query: { language: language ?? 'auto' }, body: {}, form: [{ name: 'file', file }] });
 */
export interface TranscribeRequest {
  readonly operation: 'transcribe' | 'translate-audio';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  readonly file: Upload;
  readonly stream: boolean;
  /** ISO 639-1. */
  readonly language?: string;
  /** Guides style and vocabulary. */
  readonly prompt?: string;
  readonly temperature?: number;
  /** `json`, `text`, `srt`, `verbose_json`, `vtt`, `diarized_json`. */
  readonly replyFormat: string;
  /** `word`, `segment`. */
  readonly timestamps?: readonly string[];
  readonly extra?: Extra;
}

/**
 * A part of a recording. Times are seconds.
 *
 * @example
 * const segment: TranscriptSegment = { start: 0, end: 1.5, text: 'Hello.', speaker: 'A' };
 */
export interface TranscriptSegment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly speaker?: string;
  /** Mean logarithm of the probability of its words, where the provider states how sure it is of them. */
  readonly logprob?: number;
  readonly extra?: Extra;
}

/**
 * A transcript: the value of the `result` event of `transcribe` and `translate-audio`.
 *
 * @example
 * const value: Transcript = { text: 'Hello.', language: 'en', duration: 1.5 };
 */
export interface Transcript {
  readonly text: string;
  readonly language?: string;
  /** Seconds. */
  readonly duration?: number;
  readonly segments?: readonly TranscriptSegment[];
  readonly words?: readonly { readonly word: string; readonly start: number; readonly end: number }[];
  readonly logprobs?: readonly JsonObject[];
  readonly extra?: Extra;
}

/**
 * A request to speak a text.
 *
 * @example
 * const encodeRequest = ({ text, voice }: SpeakRequest, { model }: EncodeTarget) => ({ path: '/speech', body: { model, text, voice: typeof voice === 'string' ? voice : voice.id } });
 */
export interface SpeakRequest {
  readonly operation: 'speak';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  readonly text: string;
  /** The provider's name of a voice, or its id. */
  readonly voice: string | { readonly id: string };
  /** `mp3`, `opus`, `aac`, `flac`, `wav`, `pcm`. */
  readonly fileFormat: string;
  /** 0.25 to 4. */
  readonly speed?: number;
  /** Style, tone, pacing. */
  readonly instructions?: string;
  /** True: as events with pieces in base64; false: the bytes of the file. */
  readonly stream: boolean;
  readonly extra?: Extra;
}
