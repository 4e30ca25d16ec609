/** The name under which this format keeps what only it knows. */
export const formatName = 'audio';

/** Below a provider's base URL. */
export const paths = {
  transcribe: '/audio/transcriptions',
  'translate-audio': '/audio/translations',
  speak: '/audio/speech',
} as const;

/** Formats of transcripts that are no JSON, and how they are labelled. */
export const plainTranscripts: Readonly<Record<string, string>> = {
  text: 'text/plain; charset=utf-8',
  srt: 'text/plain; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
};

/** Formats of speech, and how they are labelled. */
export const speechTypes: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
};

/** Samples a second of `pcm`, which is 16 bits, little-endian, one channel. */
export const pcmRate = 24_000;
