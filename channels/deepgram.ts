import { defineChannel, isObject, type JsonObject, type ChannelParts, type ChannelTools } from 'sluice';
import {
  speechCodec,
  reportForeign,
  throwIfError,
  unusableResponse,
  type EncodedRequest,
  type EncodeTarget,
  type SpeakRequest,
  type TranscribeRequest,
} from 'sluice/channel-kit';
import { bareFiles } from './_kit/media/bare-files.ts';
import { overHttp, plainKind } from './_kit/http/http-channel.ts';
import { soundFor, voiceName } from './_kit/media/speech.ts';
import {
  confidenceIn,
  secondsOf,
  transcriptCodec,
  wantsSpeakers,
  type Transcript,
  type TranscribedWord,
} from './_kit/media/transcripts.ts';

/** https://developers.deepgram.com/docs/tts-media-output-settings */
const sounds: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  mp3: { encoding: 'mp3' },
  opus: { encoding: 'opus', container: 'ogg' },
  aac: { encoding: 'aac' },
  flac: { encoding: 'flac' },
  wav: { encoding: 'linear16', container: 'wav', sample_rate: '24000' },
  pcm: { encoding: 'linear16', container: 'none', sample_rate: '24000' },
};

/** https://developers.deepgram.com/reference/text-to-speech/speak-request */
function speak(request: SpeakRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { text, speed, instructions, extra } = request;
  reportForeign(extra, 'deepgram', undefined, drop);
  if (speed !== undefined && speed !== 1) drop('speed');
  if (instructions !== undefined) drop('instructions');
  return {
    path: '/speak',
    query: { model: voiceOf(model, voiceName(request), drop), ...soundFor(request, sounds) },
    body: { text },
  };
}

/** Models are voices here: `aura-2` with the voice `thalia`, or `thalia-en`, is `aura-2-thalia-en`. */
function voiceOf(model: string, voice: string, drop: (path: string) => void): string {
  if (voice.startsWith('aura-')) return voice;
  if (/^aura(-\d+)?$/.test(model)) return `${model}-${voice}${/-[a-z]{2}$/.test(voice) ? '' : '-en'}`;
  if (!model.includes(voice)) drop('voice');
  return model;
}

/** https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded */
function transcribe(request: TranscribeRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { file, language, prompt, temperature } = request;
  if (prompt !== undefined) drop('prompt');
  if (temperature !== undefined) drop('temperature');
  return {
    path: '/listen',
    query: {
      model,
      smart_format: 'true',
      ...(language === undefined ? { detect_language: 'true' } : { language }),
      ...(wantsSpeakers(request) ? { diarize: 'true' } : {}),
    },
    body: {},
    form: [{ name: 'file', file }],
  };
}

function decode(body: JsonObject): Transcript {
  throwIfError(body);
  const { results, metadata } = body;
  const [channel] = isObject(results) && Array.isArray(results.channels) ? results.channels : [];
  const [best] = isObject(channel) && Array.isArray(channel.alternatives) ? channel.alternatives : [];
  if (!isObject(best) || typeof best.transcript !== 'string' || !isObject(channel))
    throw unusableResponse('sent JSON that is not a transcript');
  const { detected_language: language } = channel;
  const duration = isObject(metadata) ? metadata.duration : undefined;
  return {
    text: best.transcript,
    language: typeof language === 'string' ? language : undefined,
    duration: typeof duration === 'number' ? secondsOf(duration) : undefined,
    words: Array.isArray(best.words) ? best.words.flatMap(wordIn) : [],
  };
}

function wordIn(one: unknown): readonly TranscribedWord[] {
  if (!isObject(one) || typeof one.word !== 'string') return [];
  const { word, punctuated_word: written, start, end, speaker, confidence } = one;
  return [
    {
      word: typeof written === 'string' ? written : word,
      start: secondsOf(start),
      end: secondsOf(end),
      ...(typeof speaker === 'number' ? { speaker: String(speaker) } : {}),
      ...confidenceIn(confidence),
    },
  ];
}

/** Deepgram: transcripts and speech. Recordings are sent as they are. https://developers.deepgram.com/reference */
export default plainKind(
  defineChannel({
    name: 'deepgram',
    catalogue: ['deepgram'],
    models: ['nova*', 'enhanced*', 'base*', 'whisper*', 'aura*'],
    // The list has these without saying what they are for.
    prices: { 'aura-2*': { perCharacter: 0.000_03 }, 'aura*': { perCharacter: 0.000_015 } },
    setup: (options, tools: ChannelTools): ChannelParts => ({
      ...overHttp(options, bareFiles(tools), {
        baseUrl: 'https://api.deepgram.com/v1',
        headers: (key): Readonly<Record<string, string>> => ({ authorization: `Token ${key ?? ''}` }),
        speaks: { transcribe: ['deepgram'], speak: ['deepgram'] },
      }),
      codecs: {
        transcribe: transcriptCodec('deepgram', transcribe, decode),
        speak: speechCodec('deepgram', speak),
      },
    }),
  }),
);
