import type OpenAI from 'openai';
import { z } from 'zod';

/** Members that the official client's types require, so that a decoder that is generated from them does not fail. */
const segment = z.object({
  id: z.int(),
  seek: z.int(),
  start: z.number(),
  end: z.number(),
  text: z.string(),
  tokens: z.array(z.int()),
  temperature: z.number(),
  avg_logprob: z.number(),
  compression_ratio: z.number(),
  no_speech_prob: z.number(),
}) satisfies z.ZodType<OpenAI.Audio.TranscriptionSegment>;

type Usage = NonNullable<OpenAI.Audio.Transcription['usage']>;

const usage = z.union([
  z.object({ type: z.literal('duration'), seconds: z.number() }),
  z.object({
    type: z.literal('tokens'),
    input_tokens: z.int(),
    output_tokens: z.int(),
    total_tokens: z.int(),
  }),
]);

/** A reply to `response_format: verbose_json`. */
export const verboseTranscript = z.object({
  duration: z.number(),
  language: z.string(),
  text: z.string(),
  segments: z.array(segment).exactOptional(),
  words: z.array(z.object({ word: z.string(), start: z.number(), end: z.number() })).exactOptional(),
  usage: usage.exactOptional(),
});
verboseTranscript satisfies z.ZodType<
  Omit<OpenAI.Audio.TranscriptionVerbose, 'usage'> & {
    usage?: Usage;
  }
>;

/** A reply to `response_format: diarized_json`. */
export const diarizedTranscript = z.object({
  duration: z.number(),
  task: z.literal('transcribe'),
  text: z.string(),
  segments: z.array(
    z.object({
      id: z.string(),
      type: z.literal('transcript.text.segment'),
      start: z.number(),
      end: z.number(),
      speaker: z.string(),
      text: z.string(),
    }),
  ),
  usage: usage.exactOptional(),
}) satisfies z.ZodType<OpenAI.Audio.TranscriptionDiarized>;
