import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import assemblyai from '../../channels/assemblyai.ts';
import deepgram from '../../channels/deepgram.ts';
import elevenlabs from '../../channels/elevenlabs.ts';
import mistral from '../../channels/mistral/index.ts';
import { asWave } from '../../core/formats/_shared/speech.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import quota from '../../plugins/quota/index.ts';
import { eventually } from '../support/eventually.ts';
import { diarizedTranscript, verboseTranscript } from '../support/transcripts.ts';
import { Provider, refusal, sentForm, sentJson, sse } from './_provider.ts';

/** As the providers' own keys look. */
const elevenKey = 'sk_51d0f4c2a7b94e3f8d6a1b2c3d4e5f60718293a4b5c6d7e8';
const deepKey = '0a1b2c3d4e5f60718293a4b5c6d7e8f901234567';
const assemblyKey = 'a1b2c3d4e5f60718293a4b5c6d7e8f90';

let provider: Provider;
let openai: OpenAI;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [quota()],
    channels: [
      elevenlabs({ key: elevenKey, baseUrl: `${url}/v1` }),
      deepgram({ key: deepKey, baseUrl: `${url}/v1` }),
      mistral({ key: 'mistral-key', baseUrl: `${url}/mistral/v1` }),
      assemblyai({ key: assemblyKey, baseUrl: `${url}/v2` }),
      assemblyai({
        id: 'hasty',
        key: assemblyKey,
        baseUrl: `${url}/v2`,
        models: { hasty: 'universal-2' },
        timeouts: { attempt: 1_000 },
      }),
    ],
    prices: {
      'universal-2': { perSecond: 0.01 },
      'voxtral-mini-2602': { perSecond: 0.001 },
      eleven_v3: { perCharacter: 0.001 },
    },
    routing: { attempts: 1 },
  }));
  openai = clientOf(provider.gateway.key);
});
afterAll(() => provider.close());

function clientOf(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${provider.gateway.url}/v1`, maxRetries: 0 });
}

const recording = asWave(Buffer.alloc(200_000, 7), 24_000);
const file = () => toFile(recording, 'talk.wav', { type: 'audio/wav' });
const sound = Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 7 + 255) % 256));
const rate = { 'content-type': 'audio/mpeg' };

/** Returns the spending of a key in micro-dollars and tokens. */
async function spentBy(id: string): Promise<readonly number[]> {
  const budgets = (['micro-dollar', 'token'] as const).map(
    (unit) => ({ unit, period: 'total', amount: 1e9 }) as const,
  );
  const states = await openLedger(provider.gateway.stores).states(id, budgets);
  return states.map(({ spent }) => spent);
}

describe('speech by ElevenLabs', () => {
  const request = { model: 'eleven_v3', voice: 'JBFqnCBsd6RMkjVDRZzb', input: 'Hello there' };

  test('is asked for in its words and given as the bytes that came', async () => {
    provider.says(() => ({ headers: rate, body: sound }));
    const response = await openai.audio.speech.create({ ...request, speed: 1.1 });
    expect(response.headers.get('content-type')).toBe('audio/mpeg');
    expect(response.headers.get('x-sluice-loss')).toBeNull();
    expect(Buffer.from(await response.arrayBuffer()).equals(sound)).toBe(true);
    expect(provider.paths).toEqual([
      'POST /v1/text-to-speech/JBFqnCBsd6RMkjVDRZzb?output_format=mp3_44100_128',
    ]);
    expect(provider.requests[0]?.headers).toMatchObject({ 'xi-api-key': elevenKey, accept: '*/*' });
    expect(sentJson(provider.requests[0]!)).toEqual({
      text: 'Hello there',
      model_id: 'eleven_v3',
      voice_settings: { speed: 1.1 },
    });
  });

  test('comes as events where the client wants a stream', async () => {
    provider.says(() => ({ headers: rate, body: sound }));
    const response = await openai.audio.speech.create({ ...request, stream_format: 'sse' });
    const pieces = (await response.text())
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice(6)) as { type: string; audio?: string });
    expect(pieces.at(-1)?.type).toBe('speech.audio.done');
    expect(Buffer.concat(pieces.map(({ audio = '' }) => Buffer.from(audio, 'base64'))).equals(sound)).toBe(
      true,
    );
    expect(provider.paths[0]).toContain('/stream?');
  });

  test('takes words of its own, and tells what it cannot carry', async () => {
    provider.says(() => ({ headers: rate, body: sound }));
    const fields = { voice_settings: { stability: 0.3 }, seed: 7, mood: 'glad' };
    const response = await openai.audio.speech.create({
      ...request,
      ...fields,
      speed: 3,
      instructions: 'whisper',
      response_format: 'pcm',
    } as Parameters<typeof openai.audio.speech.create>[0]);
    expect(response.headers.get('x-sluice-loss')?.split(', ').toSorted()).toEqual([
      'instructions',
      'mood',
      'speed',
    ]);
    expect(sentJson(provider.requests[0]!)).toEqual({
      text: 'Hello there',
      model_id: 'eleven_v3',
      seed: 7,
      voice_settings: { stability: 0.3, speed: 1.2 },
    });
    expect(provider.paths[0]).toContain('pcm_24000');
  });

  test('is refused as a kind of file that it does not give', async () => {
    provider.says(() => ({ headers: rate, body: sound }));
    const { status, message } = await refusal(
      openai.audio.speech.create({ ...request, response_format: 'flac' }),
    );
    expect({ status, message }).toEqual({
      status: 400,
      message: '400 This model does not give speech as flac: use mp3, opus, wav or pcm.',
    });
    expect(provider.requests).toEqual([]);
  });

  test('is charged by the character', async () => {
    provider.says(() => ({ headers: rate, body: sound }));
    const { value, record } = await provider.gateway.apiKeys.create({ name: 'speaker' });
    await (await clientOf(value).audio.speech.create(request)).arrayBuffer();
    await expect.poll(() => spentBy(record.id)).toEqual([11_000, 18]);
  });

  test.each([
    [401, { detail: { status: 'quota_exceeded', message: `No quota for ${elevenKey}.` } }, 503],
    [401, { detail: { status: 'invalid_api_key', message: `Invalid API key ${elevenKey}` } }, 502],
    [404, { detail: { code: 'voice_not_found', message: 'A voice with the id x was not found.' } }, 400],
    [422, { detail: [{ loc: ['body', 'text'], msg: 'Field required', type: 'missing' }] }, 400],
    [429, { detail: { status: 'too_many_concurrent_requests', message: 'Too many.' } }, 429],
    [200, { detail: 'not sound' }, 502],
  ])('that fails with %i and %o is told as it concerns the client', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const failure = await refusal(openai.audio.speech.create(request));
    expect(failure.status).toBe(expected);
    expect(JSON.stringify([failure.message, provider.gateway.lines])).not.toContain(elevenKey);
  });
});

const scribed = {
  language_code: 'eng',
  language_probability: 0.98,
  text: 'Hello there. How are you?',
  audio_duration_secs: 4.5,
  words: [
    { text: 'Hello', start: 0.1, end: 0.5, type: 'word', speaker_id: 'speaker_0', logprob: -0.25 },
    { text: ' ', start: 0.5, end: 0.5, type: 'spacing', speaker_id: 'speaker_0' },
    { text: 'there.', start: 0.5, end: 1, type: 'word', speaker_id: 'speaker_0', logprob: -0.25 },
    { text: ' ', start: 1, end: 1.2, type: 'spacing', speaker_id: 'speaker_1' },
    { text: 'How', start: 1.2, end: 1.4, type: 'word', speaker_id: 'speaker_1' },
    { text: ' ', start: 1.4, end: 1.5, type: 'spacing', speaker_id: 'speaker_1' },
    { text: 'are', start: 1.5, end: 1.7, type: 'word', speaker_id: 'speaker_1' },
    { text: ' ', start: 1.7, end: 1.8, type: 'spacing', speaker_id: 'speaker_1' },
    { text: 'you?', start: 1.8, end: 2, type: 'word', speaker_id: 'speaker_1' },
  ],
};

describe('a transcript by ElevenLabs', () => {
  test('is a form there, and sentences with their times here', async () => {
    provider.says(() => ({ body: scribed }));
    const reply = await openai.audio.transcriptions.create({
      model: 'scribe_v2',
      file: await file(),
      language: 'en',
      temperature: 0.5,
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    });
    expect(reply).toMatchObject({
      text: scribed.text,
      language: 'eng',
      duration: 4.5,
      usage: { type: 'duration', seconds: 4.5 },
    });
    expect(verboseTranscript.parse(reply)).toBeTruthy();
    const same = {
      seek: 0,
      tokens: [],
      temperature: 0.5,
      no_speech_prob: 0,
      // 25 bytes, which zlib makes 33 of.
      compression_ratio: 25 / 33,
    };
    expect(reply.segments).toEqual([
      { ...same, id: 0, start: 0.1, end: 1, text: 'Hello there.', speaker: 'speaker_0', avg_logprob: -0.25 },
      { ...same, id: 1, start: 1.2, end: 2, text: 'How are you?', speaker: 'speaker_1', avg_logprob: 0 },
    ]);
    expect(reply.words?.[1]).toEqual({ word: 'there.', start: 0.5, end: 1 });
    expect(provider.paths).toEqual(['POST /v1/speech-to-text']);
    const { fields, files } = await sentForm(provider.requests[0]!);
    expect(fields).toEqual({
      model_id: 'scribe_v2',
      language_code: 'en',
      temperature: '0.5',
      timestamps_granularity: 'word',
      tag_audio_events: 'false',
    });
    expect(files.file?.bytes.equals(recording)).toBe(true);
  });

  test('is subtitles where those are asked for', async () => {
    provider.says(() => ({ body: scribed }));
    const reply: unknown = await openai.audio.transcriptions.create({
      model: 'scribe_v2',
      file: await file(),
      response_format: 'srt',
    });
    expect(reply).toBe(
      '1\n00:00:00,100 --> 00:00:01,000\nHello there.\n\n2\n00:00:01,200 --> 00:00:02,000\nHow are you?\n',
    );
  });

  test('comes in one piece of a stream', async () => {
    provider.says(() => ({ body: scribed }));
    const stream = await openai.audio.transcriptions.create({
      model: 'scribe_v2',
      file: await file(),
      stream: true,
    });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual(['transcript.text.delta', 'transcript.text.done']);
  });

  test('cannot be a translation', async () => {
    const call = openai.audio.translations.create({ model: 'scribe_v2', file: await file() });
    expect((await refusal(call)).status).toBe(503);
  });
});

const listened = {
  metadata: { request_id: 'r', duration: 8.33, channels: 1 },
  results: {
    channels: [
      {
        detected_language: 'en',
        alternatives: [
          {
            transcript: 'Hello there. Bye.',
            confidence: 0.99,
            words: [
              { word: 'hello', start: 0.1, end: 0.5, confidence: 0.9, punctuated_word: 'Hello', speaker: 0 },
              { word: 'there', start: 0.6, end: 1, confidence: 0.9, punctuated_word: 'there.', speaker: 0 },
              { word: 'bye', start: 5, end: 5.4, confidence: 0.9, punctuated_word: 'Bye.', speaker: 1 },
            ],
          },
        ],
      },
    ],
  },
};

describe('Deepgram', () => {
  test('is sent the recording as it is, and its words are read', async () => {
    provider.says(() => ({ body: listened }));
    const { data, response } = await openai.audio.transcriptions
      .create({
        model: 'nova-3',
        file: await file(),
        prompt: 'names',
        response_format: 'diarized_json',
      })
      .withResponse();
    expect(data).toMatchObject({
      text: 'Hello there. Bye.',
      duration: 8.33,
      segments: [
        { speaker: '0', text: 'Hello there.', start: 0.1, end: 1 },
        { speaker: '1', text: 'Bye.', start: 5, end: 5.4 },
      ],
    });
    expect(diarizedTranscript.parse(data)).toBeTruthy();
    expect(response.headers.get('x-sluice-loss')).toBe('prompt');
    expect(provider.paths).toEqual([
      'POST /v1/listen?model=nova-3&smart_format=true&detect_language=true&diarize=true',
    ]);
    expect(provider.requests[0]?.body.equals(recording)).toBe(true);
    expect(provider.requests[0]?.headers).toMatchObject({
      authorization: `Token ${deepKey}`,
      'content-type': 'audio/wav',
      'content-length': String(recording.length),
    });
  });

  test.each([
    [undefined, true, false],
    [['word'], false, true],
    [['word', 'segment'], true, true],
  ] as const)('tells the times that are asked for by %j', async (granularities, hasSegments, hasWords) => {
    provider.says(() => ({ body: listened }));
    const reply = await openai.audio.transcriptions.create({
      model: 'nova-3',
      file: await file(),
      response_format: 'verbose_json',
      ...(granularities === undefined ? {} : { timestamp_granularities: [...granularities] }),
    });
    expect(verboseTranscript.parse(reply)).toMatchObject({ language: 'en', duration: 8.33 });
    expect(reply.segments?.map(({ avg_logprob: mean }) => mean)).toEqual(
      hasSegments ? [Math.log(0.9), Math.log(0.9)] : undefined,
    );
    expect(reply.words !== undefined).toBe(hasWords);
  });

  test.each([
    ['aura-2', 'thalia', 'aura-2-thalia-en', null],
    ['aura-2', 'celeste-es', 'aura-2-celeste-es', null],
    ['aura', 'asteria', 'aura-asteria-en', null],
    ['aura-2', 'aura-2-zeus-en', 'aura-2-zeus-en', null],
    ['aura-2-thalia-en', 'alloy', 'aura-2-thalia-en', 'voice'],
  ])('speaks as %s with the voice %s', async (model, voice, deepgramModel, lost) => {
    provider.says(() => ({ headers: rate, body: sound }));
    const response = await openai.audio.speech.create({ model, voice, input: 'Hi', response_format: 'wav' });
    expect(Buffer.from(await response.arrayBuffer()).equals(sound)).toBe(true);
    expect(response.headers.get('x-sluice-loss')).toBe(lost);
    expect(provider.paths).toEqual([
      `POST /v1/speak?model=${deepgramModel}&encoding=linear16&container=wav&sample_rate=24000`,
    ]);
    expect(sentJson(provider.requests[0]!)).toEqual({ text: 'Hi' });
  });

  test.each([
    [400, { err_code: 'Bad Request', err_msg: 'failed to process audio: corrupt data' }, 400],
    [401, { err_code: 'INVALID_AUTH', err_msg: `Invalid credentials ${deepKey}.` }, 502],
    [402, { err_code: 'ASR_PAYMENT_REQUIRED', err_msg: 'Project does not have enough credits.' }, 503],
    [429, { err_code: 'TOO_MANY_REQUESTS', err_msg: 'Too many requests.' }, 429],
    [504, { err_code: 'SLOW', err_msg: 'timed out' }, 504],
    [200, { metadata: {}, results: { channels: [] } }, 502],
  ])('that answers %i and %o is understood', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const call = openai.audio.transcriptions.create({ model: 'nova-3', file: await file() });
    const failure = await refusal(call);
    expect(failure.status).toBe(expected);
    expect(failure.message).not.toContain(deepKey);
  });
});

const voxtral = {
  model: 'voxtral-mini-2602',
  text: ' Hello there. Bye.',
  language: null,
  segments: [
    { type: 'transcription_segment', text: ' Hello there.', start: 0.1, end: 1, speaker_id: 'speaker_1' },
    {
      type: 'transcription_segment',
      text: ' Bye.',
      start: 5,
      end: 5.4,
      score: null,
      speaker_id: 'speaker_2',
    },
  ],
  usage: { prompt_audio_seconds: 12, prompt_tokens: 3, completion_tokens: 41, total_tokens: 419 },
};

describe('Voxtral', () => {
  const model = 'voxtral-mini-2602';

  test('is sent a form of its own fields alone', async () => {
    provider.says(() => ({ body: { ...voxtral, segments: [] } }));
    const { data, response } = await openai.audio.transcriptions
      .create({
        model,
        file: await file(),
        language: 'en',
        temperature: 0.5,
        prompt: 'Names: Ada.',
        response_format: 'json',
        context_bias: 'Ada',
      } as OpenAI.Audio.TranscriptionCreateParamsNonStreaming)
      .withResponse();
    expect(data).toEqual({ text: 'Hello there. Bye.', usage: { type: 'duration', seconds: 12 } });
    expect(response.headers.get('x-sluice-loss')).toBe('prompt');
    expect(provider.paths).toEqual(['POST /mistral/v1/audio/transcriptions']);
    const { fields, files } = await sentForm(provider.requests[0]!);
    expect(fields).toEqual({ model, language: 'en', temperature: '0.5', context_bias: 'Ada' });
    expect(files.file?.bytes.equals(recording)).toBe(true);
  });

  test('is asked who speaks, and when, without the language that it then refuses', async () => {
    provider.says(() => ({ body: voxtral }));
    const { data, response } = await openai.audio.transcriptions
      .create({ model, file: await file(), language: 'en', response_format: 'diarized_json' })
      .withResponse();
    expect(data).toMatchObject({
      text: 'Hello there. Bye.',
      duration: 12,
      segments: [
        { speaker: 'speaker_1', text: 'Hello there.', start: 0.1, end: 1 },
        { speaker: 'speaker_2', text: 'Bye.', start: 5, end: 5.4 },
      ],
    });
    expect(diarizedTranscript.parse(data)).toBeTruthy();
    expect(response.headers.get('x-sluice-loss')).toBe('language');
    const { fields } = await sentForm(provider.requests[0]!);
    expect(fields).toEqual({ model, timestamp_granularities: 'segment', diarize: 'true' });
  });

  test.each([
    [undefined, 'und'],
    ['fr', 'fr'],
  ])('tells the language %s, which it does not say itself, as %s', async (language, expectedLanguage) => {
    provider.says(() => ({ body: voxtral }));
    const request = { model, file: await file(), response_format: 'verbose_json' } as const;
    const reply = await openai.audio.transcriptions.create({
      ...request,
      ...(language === undefined ? {} : { language }),
    });
    expect(verboseTranscript.parse(reply)).toMatchObject({ language: expectedLanguage, duration: 12 });
    expect(reply.segments).toHaveLength(2);
  });

  test('writes subtitles', async () => {
    provider.says(() => ({ body: voxtral }));
    const subtitles: unknown = await openai.audio.transcriptions.create({
      model,
      file: await file(),
      response_format: 'vtt',
    });
    expect(subtitles).toContain('00:00:05.000 --> 00:00:05.400\nBye.');
  });

  test('times words where these are asked for, of which sentences are made', async () => {
    const word = (text: string, start: number) => ({
      type: 'transcription_segment',
      text,
      start,
      end: start + 0.25,
      speaker_id: null,
    });
    const segments = [word('Hello', 0), word(' there.', 0.5), word(' Bye.', 5)];
    provider.says(() => ({ body: { ...voxtral, segments } }));
    const { data, response } = await openai.audio.transcriptions
      .create({
        model,
        file: await file(),
        response_format: 'verbose_json',
        timestamp_granularities: ['word', 'segment'],
      })
      .withResponse();
    expect(data.words).toEqual([
      { word: 'Hello', start: 0, end: 0.25 },
      { word: 'there.', start: 0.5, end: 0.75 },
      { word: 'Bye.', start: 5, end: 5.25 },
    ]);
    expect(data.segments).toMatchObject([
      { text: 'Hello there.', start: 0, end: 0.75 },
      { text: 'Bye.', start: 5, end: 5.25 },
    ]);
    expect(response.headers.get('x-sluice-loss')).toBeNull();
    const { fields } = await sentForm(provider.requests[0]!);
    expect(fields).toEqual({ model, timestamp_granularities: 'word' });
  });

  test('streams its pieces, with turns of speakers where these are asked for', async () => {
    const frames = [
      { type: 'transcription.language', audio_language: 'en' },
      { type: 'transcription.text.delta', text: 'Hello' },
      { type: 'transcription.text.delta', text: ' there.' },
      { type: 'transcription.segment', text: ' Hello there.', start: 0.1, end: 1, speaker_id: 'speaker_1' },
      { ...voxtral, text: 'Hello there.', type: 'transcription.done' },
    ];
    provider.says(() => sse(frames));
    const { value, record } = await provider.gateway.apiKeys.create({ name: 'streaming' });
    const request = { model, file: await file(), stream: true, response_format: 'diarized_json' } as const;
    const events: unknown[] = [];
    for await (const event of await clientOf(value).audio.transcriptions.create(request)) events.push(event);
    expect(events).toMatchObject([
      { type: 'transcript.text.delta', delta: 'Hello' },
      { type: 'transcript.text.delta', delta: ' there.' },
      {
        type: 'transcript.text.segment',
        id: 'seg_1',
        start: 0.1,
        end: 1,
        text: 'Hello there.',
        speaker: 'speaker_1',
      },
      { type: 'transcript.text.done', text: 'Hello there.', usage: { type: 'duration', seconds: 12 } },
    ]);
    const { fields } = await sentForm(provider.requests[0]!);
    expect(fields).toEqual({ model, timestamp_granularities: 'segment', stream: 'true', diarize: 'true' });
    await expect.poll(async () => (await spentBy(record.id))[0]).toBe(12_000);
    provider.says(() => sse(frames.slice(0, 3)));
    const cut = async () => {
      for await (const _ of await openai.audio.transcriptions.create(request));
    };
    await expect(cut()).rejects.toThrow(/closed the connection/);
  });

  test('is charged by the second that it heard', async () => {
    provider.says(() => ({ body: voxtral }));
    const { value, record } = await provider.gateway.apiKeys.create({ name: 'listener' });
    await clientOf(value).audio.transcriptions.create({ model, file: await file() });
    await expect.poll(async () => (await spentBy(record.id))[0]).toBe(12_000);
  });

  test.each([
    [422, { object: 'error', message: { detail: [{ loc: ['body', 'file'], msg: 'Field required' }] } }, 400],
    [401, { detail: 'Unauthorized' }, 502],
    [200, { model, segments: [] }, 502],
  ])('that answers %i and %o is understood', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const call = openai.audio.transcriptions.create({ model, file: await file() });
    expect((await refusal(call)).status).toBe(expected);
  });
});

describe('AssemblyAI', () => {
  const words = [
    { text: 'Hello', start: 100, end: 500, confidence: 0.9, speaker: 'A' },
    { text: 'there.', start: 600, end: 1_000, confidence: 0.9, speaker: 'A' },
  ];
  const done = {
    id: 't1',
    status: 'completed',
    text: 'Hello there.',
    language_code: 'en_us',
    audio_duration: 4,
    words,
    error: null,
  };
  const steps = (last: (poll: number) => object | undefined): Provider['script'] => {
    let polls = 0;
    return ({ url }) => {
      if (url === '/v2/upload') return { body: { upload_url: 'https://cdn.assemblyai.example/upload/1' } };
      if (url === '/v2/transcript') return { body: { id: 't1', status: 'queued' } };
      const body = last((polls += 1));
      return body === undefined ? undefined : 'said' in body ? (body.said as object) : { body };
    };
  };

  test('is given the recording, asked for its transcript, and asked again until that is there', async () => {
    provider.says(steps((poll) => (poll < 3 ? { id: 't1', status: 'processing' } : done)));
    const reply = await openai.audio.transcriptions.create({
      model: 'universal-3-pro',
      file: await file(),
      prompt: 'Names: Ada.',
      response_format: 'verbose_json',
    });
    expect(reply).toMatchObject({
      text: 'Hello there.',
      language: 'en_us',
      duration: 4,
      segments: [{ start: 0.1, end: 1, text: 'Hello there.', speaker: 'A' }],
      usage: { type: 'duration', seconds: 4 },
    });
    expect(verboseTranscript.parse(reply).segments).toMatchObject([{ avg_logprob: Math.log(0.9) }]);
    expect(provider.paths).toEqual([
      'POST /v2/upload',
      'POST /v2/transcript',
      'GET /v2/transcript/t1',
      'GET /v2/transcript/t1',
      'GET /v2/transcript/t1',
    ]);
    expect(provider.requests[0]?.body.equals(recording)).toBe(true);
    expect(provider.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array.from({ length: 5 }, () => assemblyKey),
    );
    expect(sentJson(provider.requests[1]!)).toEqual({
      audio_url: 'https://cdn.assemblyai.example/upload/1',
      speech_models: ['universal-3-pro'],
      language_detection: true,
      prompt: 'Names: Ada.',
    });
  });

  test('may fail to answer a question or two', async () => {
    provider.says(
      steps((poll) =>
        poll === 1 ? { said: { status: 503, body: {} } } : poll === 2 ? { said: { status: 429 } } : done,
      ),
    );
    const reply = await openai.audio.transcriptions.create({ model: 'universal-2', file: await file() });
    expect(reply.text).toBe('Hello there.');
  });

  test.each([
    ['Transcoding failed. File does not appear to contain audio.', 400],
    ['Server error, developers have been alerted.', 502],
  ])('that gives up with "%s" is told as it concerns the client', async (error, status) => {
    provider.says(steps(() => ({ id: 't1', status: 'error', error })));
    const call = openai.audio.transcriptions.create({ model: 'universal-2', file: await file() });
    expect((await refusal(call)).status).toBe(status);
  });

  test.each(['/v2/upload', '/v2/transcript', '/v2/transcript/t1'])(
    'that refuses at %s is asked no further',
    async (path) => {
      const script = steps(() => done);
      provider.says((request, count) =>
        request.url === path
          ? { status: 400, body: { error: `This is not allowed for ${assemblyKey}.` } }
          : script(request, count),
      );
      const failure = await refusal(
        openai.audio.transcriptions.create({ model: 'universal-2', file: await file() }),
      );
      expect(failure.status).toBe(400);
      expect(failure.message).not.toContain(assemblyKey);
      expect(provider.requests.at(-1)?.url).toBe(path);
    },
  );

  test('is asked no longer than an attempt may take', async () => {
    provider.says(steps(() => ({ id: 't1', status: 'processing' })));
    const failure = await refusal(openai.audio.transcriptions.create({ model: 'hasty', file: await file() }));
    expect(failure.status).toBe(504);
    const requestsBefore = provider.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(provider.requests).toHaveLength(requestsBefore);
  });

  test('is asked no more when the client has left, who pays for one transcript', async () => {
    provider.says(steps(() => ({ id: 't1', status: 'processing' })));
    const { value, record } = await provider.gateway.apiKeys.create({ name: 'leaves' });
    const leaving = new AbortController();
    const call = clientOf(value).audio.transcriptions.create(
      { model: 'universal-2', file: await file() },
      { signal: leaving.signal },
    );
    const left = refusal(call);
    await eventually(() => expect(provider.requests.length).toBeGreaterThan(4));
    leaving.abort();
    await left;
    // A recording of 4.17 seconds, which were begun: five.
    await expect.poll(() => spentBy(record.id)).toEqual([50_000, 70]);
    const requestsBefore = provider.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(provider.requests.length - requestsBefore).toBeLessThanOrEqual(1);
  });
});
