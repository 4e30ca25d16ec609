import {
  defineChannel,
  isObject,
  type JsonObject,
  type Upstream,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import {
  speechCodec,
  throwIfError,
  unusableResponse,
  type EncodedRequest,
  type EncodeTarget,
  type SpeakRequest,
  type TranscribeRequest,
} from 'sluice/channel-kit';
import { overHttp, plainKind } from './_kit/http/http-channel.ts';
import { ownWords } from './_kit/dialect/own-words.ts';
import { soundFor, voiceName } from './_kit/media/speech.ts';
import {
  logprobIn,
  secondsOf,
  transcriptCodec,
  wantsSpeakers,
  type Transcript,
  type TranscribedWord,
} from './_kit/media/transcripts.ts';

/** `output_format`: codec, samples a second, kilobits a second. */
const sounds = {
  mp3: 'mp3_44100_128',
  opus: 'opus_48000_96',
  wav: 'wav_24000',
  pcm: 'pcm_24000',
} as const;

/** Range of the speed of voices. */
const slowest = 0.7;
const fastest = 1.2;

/** Members of this provider's own format that clients may set. */
const takes = ['voice_settings', 'language_code', 'seed', 'apply_text_normalization'];

/** https://elevenlabs.io/docs/api-reference/text-to-speech/convert */
function speak(request: SpeakRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { text, speed, instructions, stream, extra } = request;
  const { voice_settings: settings, ...own } = ownWords(extra, takes, drop);
  if (instructions !== undefined) drop('instructions');
  const pace = speed === undefined ? undefined : Math.min(fastest, Math.max(slowest, speed));
  if (pace !== speed) drop('speed');
  const voiceSettings: JsonObject = {
    ...(isObject(settings) ? settings : {}),
    ...(pace === undefined ? {} : { speed: pace }),
  };
  return {
    path: `/text-to-speech/${encodeURIComponent(voiceName(request))}${stream ? '/stream' : ''}`,
    query: { output_format: soundFor(request, sounds) },
    body: {
      text,
      model_id: model,
      ...own,
      ...(Object.keys(voiceSettings).length === 0 ? {} : { voice_settings: voiceSettings }),
    },
  };
}

/** https://elevenlabs.io/docs/api-reference/speech-to-text/convert */
function transcribe(request: TranscribeRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { file, language, prompt, temperature } = request;
  if (prompt !== undefined) drop('prompt');
  const texts: Readonly<Record<string, string | undefined>> = {
    model_id: model,
    language_code: language,
    temperature: temperature === undefined ? undefined : String(temperature),
    timestamps_granularity: 'word',
    // Laughter and steps are no words.
    tag_audio_events: 'false',
    diarize: wantsSpeakers(request) ? 'true' : undefined,
  };
  return {
    path: '/speech-to-text',
    body: {},
    form: [
      ...Object.entries(texts).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }])),
      { name: 'file', file },
    ],
  };
}

function decode(body: JsonObject): Transcript {
  throwIfError(body);
  const { text, language_code: language, audio_duration_secs: duration, words } = body;
  if (typeof text !== 'string') throw unusableResponse('sent JSON that is not a transcript');
  return {
    text,
    language: typeof language === 'string' ? language : undefined,
    duration: typeof duration === 'number' ? secondsOf(duration) : undefined,
    words: Array.isArray(words) ? wordsIn(words) : [],
  };
}

/** Returns the words of a list. The provider reports the text between words as an entry of its own. */
function wordsIn(list: readonly unknown[]): readonly TranscribedWord[] {
  const words: TranscribedWord[] = [];
  let before = '';
  for (const one of list) {
    if (!isObject(one) || typeof one.text !== 'string') continue;
    const { text, type, start, end, speaker_id: speaker, logprob } = one;
    if (type === 'spacing') {
      before += text;
      continue;
    }
    words.push({
      word: text,
      before,
      start: secondsOf(start),
      end: secondsOf(end),
      ...(typeof speaker === 'string' ? { speaker } : {}),
      ...logprobIn(logprob),
    });
    before = '';
  }
  return words;
}

/** ElevenLabs: speech and transcripts. https://elevenlabs.io/docs/api-reference/introduction */
export default plainKind(
  defineChannel({
    name: 'elevenlabs',
    catalogue: ['elevenlabs'],
    models: ['eleven_*', 'scribe_*'],
    setup(options, tools: ChannelTools): ChannelParts {
      const parts = overHttp(options, tools, {
        baseUrl: 'https://api.elevenlabs.io/v1',
        headers: (key): Readonly<Record<string, string>> => ({ 'xi-api-key': key ?? '' }),
        speaks: { speak: ['elevenlabs'], transcribe: ['elevenlabs'] },
      });
      return {
        ...parts,
        codecs: {
          speak: speechCodec('elevenlabs', speak),
          transcribe: transcriptCodec('elevenlabs', transcribe, decode),
        },
        open: async (call, request) => aboutVoices(await parts.open(call, request)),
      };
    },
  }),
);

/** Converts 404 into 400, because the voice or model that the client named does not exist. No other channel is tried and no breaker opens. */
function aboutVoices(answer: Upstream): Upstream {
  return answer.status === 404 ? { ...answer, status: 400 } : answer;
}
