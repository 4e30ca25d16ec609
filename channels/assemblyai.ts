import {
  defineChannel,
  isObject,
  parseJson,
  type JsonObject,
  type JsonValue,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import {
  unusableResponse,
  upstreamError,
  type EncodedRequest,
  type EncodeTarget,
  type Form,
  type TranscribeRequest,
} from 'sluice/channel-kit';
import { bareFiles } from './_kit/media/bare-files.ts';
import { overHttp, plainKind } from './_kit/http/http-channel.ts';
import {
  answerOf,
  requestWhole,
  requestFree,
  pollUntilDone,
  stepOf,
  hasSucceeded,
} from './_kit/jobs/jobs.ts';
import {
  confidenceIn,
  secondsOf,
  transcriptCodec,
  wantsSpeakers,
  type Transcript,
  type TranscribedWord,
} from './_kit/media/transcripts.ts';

/** https://www.assemblyai.com/docs/api-reference/transcripts/submit */
function transcribe(request: TranscribeRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { file, language, prompt, temperature } = request;
  // Only models that take a prompt know these options.
  const takesPrompt = model.startsWith('universal-3');
  if (prompt !== undefined && !takesPrompt) drop('prompt');
  if (temperature !== undefined && !takesPrompt) drop('temperature');
  const options: JsonObject = {
    speech_models: [model],
    ...(language === undefined ? { language_detection: true } : { language_code: language }),
    ...(wantsSpeakers(request) ? { speaker_labels: true } : {}),
    ...(prompt !== undefined && takesPrompt ? { prompt } : {}),
    ...(temperature !== undefined && takesPrompt ? { temperature } : {}),
  };
  return {
    path: '/transcript',
    body: {},
    form: [
      { name: 'file', file },
      ...Object.entries(options).map(([name, value]) => ({ name, value: JSON.stringify(value) })),
    ],
  };
}

function decode(body: JsonObject): Transcript {
  const { text, status, error, language_code: language, audio_duration: duration, words } = body;
  if (status === 'error') throw failed(typeof error === 'string' ? error : '');
  if (typeof text !== 'string') throw unusableResponse('sent JSON that is not a transcript');
  return {
    text,
    language: typeof language === 'string' ? language : undefined,
    duration: typeof duration === 'number' ? secondsOf(duration) : undefined,
    words: Array.isArray(words) ? words.flatMap(wordIn) : [],
  };
}

/** Times are milliseconds. */
function wordIn(one: unknown): readonly TranscribedWord[] {
  if (!isObject(one) || typeof one.text !== 'string') return [];
  const { text, start, end, speaker, confidence } = one;
  return [
    {
      word: text,
      start: secondsOf(start) / 1000,
      end: secondsOf(end) / 1000,
      ...(typeof speaker === 'string' ? { speaker } : {}),
      ...confidenceIn(confidence),
    },
  ];
}

/**
 * Converts the error of a failed recording: 422 unless the provider failed, because most are invalid or silent.
 * https://www.assemblyai.com/docs/guides/common_errors_and_solutions
 */
function failed(message: string): Error {
  const isTheirs = /server error|internal|try again|timed? ?out/i.test(message);
  return upstreamError(isTheirs ? 500 : 422, JSON.stringify({ message }));
}

/** Returns the texts of a form as members of an object. What an operator has added to it may be plain text. */
function membersOf(form: Form): JsonObject {
  return Object.fromEntries(
    form.flatMap((part) => ('value' in part ? [[part.name, jsonOr(part.value)]] : [])),
  );
}

function jsonOr(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

const isRunning = ({ status }: JsonObject): boolean => status === 'queued' || status === 'processing';

/** Channel for AssemblyAI: uploads a recording, creates a transcript, and polls it until it is complete. https://www.assemblyai.com/docs/api-reference */
export default plainKind(
  defineChannel({
    name: 'assemblyai',
    catalogue: ['assemblyai'],
    models: ['universal*', 'best', 'nano', 'slam-*'],
    setup(options, tools: ChannelTools): ChannelParts {
      const { open } = overHttp(options, bareFiles(tools), {
        baseUrl: 'https://api.assemblyai.com/v2',
        headers: (key): Readonly<Record<string, string>> => ({ authorization: key ?? '' }),
        speaks: {},
      });
      return {
        speaks: { transcribe: ['assemblyai'] },
        codecs: { transcribe: transcriptCodec('assemblyai', transcribe, decode) },
        async open(call, request) {
          const form = Array.isArray(request.body) ? request.body : [];
          const body = form.filter((part) => 'file' in part);
          const upload = await requestFree(call, open, stepOf(request, { path: '/upload', body }));
          if (!hasSucceeded(upload)) return answerOf(upload);
          const { upload_url: address = null } = upload.body;
          const transcriptRequest = JSON.stringify({ audio_url: address, ...membersOf(form) });
          const order = await requestWhole(
            call,
            open,
            stepOf(request, { path: '/transcript', body: transcriptRequest }),
          );
          if (!hasSucceeded(order) || !isRunning(order.body)) return answerOf(order);
          const path = `/transcript/${encodeURIComponent(String(order.body.id))}`;
          return answerOf(await pollUntilDone(call, open, stepOf(request, { path }), isRunning));
        },
      };
    },
  }),
);
