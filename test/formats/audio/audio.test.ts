import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { asSrt, asVtt } from '../../../core/formats/audio/transcribe/subtitles.ts';
import { secondsOf } from '../../../core/formats/audio/transcribe/recording.ts';
import audio from '../../../core/formats/audio/index.ts';
import generateContent from '../../../core/formats/generate-content/index.ts';
import { asWave } from '../../../core/formats/_shared/speech.ts';
import type { Codec, RouteParams, WireFrame } from '../../../core/sdk/format.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { SpeakRequest, TranscribeRequest } from '../../../core/model/audio.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { Form, FormPart, Upload } from '../../../core/model/form.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { formOf, uploadOf } from '../../support/form.ts';
import { checked, encodedBy, replyTo } from '../../support/one-shot-laws.ts';
import { verboseTranscript } from '../../support/transcripts.ts';
import { tries } from '../../support/tries.ts';

const transcribe = audio.codecs.transcribe as Codec<TranscribeRequest>;
const translate = audio.codecs['translate-audio'] as Codec<TranscribeRequest>;
const speak = audio.codecs.speak as Codec<SpeakRequest>;

const mp3 = Buffer.concat([Buffer.from('ID3\x03\0\0\0\0\0\0', 'latin1'), Buffer.alloc(100)]);

const upload = (bytes: Buffer, filename = 'a.mp3'): Upload => uploadOf(bytes, filename, 'audio/mpeg');
const file = upload(mp3);
const withFile = (fields: JsonObject, parts: readonly FormPart[] = [{ name: 'file', file }]): RouteParams =>
  formOf(fields, parts);
const base = { model: 'm' };

function formSent(fields: JsonObject, traits: ModelTraits = {}): Form {
  const request = transcribe.validate(fields, withFile(fields));
  const { form } = transcribe.encodeRequest(request, {
    model: 'theirs',
    stream: request.stream,
    traits,
    headers: {},
    unsupported: 'refuse',
    drop: (path) => {
      throw new Error(`lost ${path}`);
    },
  });
  return form ?? [];
}
const fieldsOf = (form: Form): [string, string][] =>
  form.flatMap((part) => ('value' in part ? [[part.name, part.value] as [string, string]] : []));

describe('a form with a recording', () => {
  test('goes to the provider with everything that it says, known or not', () => {
    const fields = {
      model: 'm',
      language: 'de',
      prompt: 'names',
      temperature: '0.2',
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
      include: ['logprobs'],
      chunking_strategy: '{"type":"server_vad"}',
      odd: 'x',
    };
    const form = formSent(fields);
    expect(form[0]).toEqual({ name: 'file', file });
    expect(fieldsOf(form)).toEqual([
      ['model', 'theirs'],
      ['language', 'de'],
      ['prompt', 'names'],
      ['temperature', '0.2'],
      ['response_format', 'verbose_json'],
      ['timestamp_granularities[]', 'word'],
      ['timestamp_granularities[]', 'segment'],
      ['include[]', 'logprobs'],
      ['chunking_strategy', '{"type":"server_vad"}'],
      ['odd', 'x'],
    ]);
  });

  test('may call the prompt by its other name, which the provider does not know', () => {
    expect(transcribe.passes?.({ model: 'm', instructions: 'x' }, {})).toBe(false);
    expect(fieldsOf(formSent({ model: 'm', instructions: 'x' }))).toContainEqual(['prompt', 'x']);
    expect(fieldsOf(formSent({ model: 'm', instructions: 'x', prompt: 'y' }))).toEqual([
      ['model', 'theirs'],
      ['prompt', 'y'],
    ]);
  });

  test('asks for what the model has when the wish can be made from it', () => {
    const format = (requested: string, known: readonly string[]): string | undefined =>
      fieldsOf(formSent({ ...base, response_format: requested }, { transcripts: known })).find(
        ([name]) => name === 'response_format',
      )?.[1];
    expect(format('srt', ['json', 'verbose_json'])).toBe('verbose_json');
    expect(format('text', ['json'])).toBeUndefined();
    expect(format('vtt', ['vtt'])).toBe('vtt');
    expect(() => format('srt', ['json', 'text'])).toThrow(
      expect.objectContaining({ code: 'unsupported_value', param: 'response_format' }),
    );
    expect(transcribe.passes?.({ response_format: 'srt' }, { transcripts: ['json'] })).toBe(false);
    expect(transcribe.passes?.({ response_format: 'json' }, { transcripts: ['json'] })).toBe(true);
    expect(transcribe.passes?.({}, {})).toBe(true);
  });

  test.each<[JsonObject, readonly FormPart[], string]>([
    [base, [], 'file'],
    [{}, [{ name: 'file', file }], 'model'],
    [base, [{ name: 'file', file: upload(Buffer.alloc(0)) }], 'file'],
    [base, [{ name: 'file', file: upload(Buffer.from('{"hello": 1}'), 'a.mp3') }], 'file'],
    [base, [{ name: 'file', file: upload(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), 'a.mp3') }], 'file'],
    [base, [{ name: 'file', file: upload(Buffer.from([1, 2, 3, 0xfe]), 'a.exe') }], 'file'],
    [
      base,
      [
        { name: 'file', file },
        { name: 'file', file },
      ],
      'file',
    ],
    [{ ...base, response_format: 'pdf' }, [{ name: 'file', file }], 'response_format'],
    [{ ...base, temperature: '2' }, [{ name: 'file', file }], 'temperature'],
    [{ ...base, temperature: 'warm' }, [{ name: 'file', file }], 'temperature'],
    [{ ...base, stream: 'maybe' }, [{ name: 'file', file }], 'stream'],
    [{ ...base, timestamp_granularities: ['word'] }, [{ name: 'file', file }], 'timestamp_granularities'],
    [
      { ...base, response_format: 'verbose_json', timestamp_granularities: ['line'] },
      [{ name: 'file', file }],
      'timestamp_granularities',
    ],
    [{ ...base, chunking_strategy: '{no' }, [{ name: 'file', file }], 'chunking_strategy'],
  ])('%j names what is wrong', (fields, parts, param) => {
    expect(() => {
      transcribe.peek(fields, {});
      transcribe.validate(fields, withFile(fields, parts));
    }).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test.each([
    ['mp3 without a tag', Buffer.from([0xff, 0xfb, 0x90, 0x64]), 'x'],
    ['wav', asWave(Buffer.alloc(10), 8000), 'claims-to-be.mp3'],
    ['ogg', Buffer.from('OggS\0\x02', 'latin1'), 'a.ogg'],
    ['flac', Buffer.from('fLaC\0\0\0\x22', 'latin1'), 'a.flac'],
    ['m4a', Buffer.from('\0\0\0\x20ftypM4A \0\0\0\0', 'latin1'), 'a.m4a'],
    ['webm', Buffer.from('\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x1fB\x86\x81\x01B\x82\x84webm', 'latin1'), 'a.webm'],
    ['bytes that nobody knows, with the name of a recording', Buffer.from([0, 0, 0, 0, 7, 0xfe]), 'a.mp3'],
  ])('takes %s', (_, bytes, name) => {
    expect(() =>
      transcribe.validate(base, withFile(base, [{ name: 'file', file: upload(bytes, name) }])),
    ).not.toThrow();
  });

  test('lasts as long as its header says, or as its size tells', () => {
    expect(secondsOf(upload(asWave(Buffer.alloc(48_000 * 3), 24_000)))).toEqual({ about: 4, most: 4 });
    expect(secondsOf({ ...file, size: 80_000 })).toEqual({ about: 10, most: 160 });
    const lying = asWave(Buffer.alloc(48_000 * 3), 24_000);
    lying.writeUInt32LE(4_000_000_000, 28);
    expect(secondsOf(upload(lying))).toEqual({ about: 4, most: 4 });
    expect(transcribe.estimate?.(transcribe.validate(base, withFile(base)))).toMatchObject({
      units: { seconds: 1 },
    });
  });
});

describe('a transcript', () => {
  const measured = {
    seek: 700,
    temperature: 0.2,
    avg_logprob: -0.1,
    compression_ratio: 1.5,
    no_speech_prob: 0.5,
  };
  const verbose: JsonObject = {
    task: 'transcribe',
    language: 'english',
    duration: 3661.5,
    text: 'Hello world',
    segments: [
      { ...measured, id: 0, start: 0, end: 1.5, text: ' Hello', tokens: [1] },
      { ...measured, id: 1, start: 1.5, end: 3661.5, text: ' world', tokens: [2, 3], odd: 3 },
    ],
    words: [{ word: 'Hello', start: 0, end: 1 }],
    usage: { type: 'duration', seconds: 3662 },
    odd: 1,
  };

  test('is the same there and back', () => {
    const events = transcribe.decodeWhole(verbose, {});
    const body = { response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] };
    expect(replyTo(transcribe, events, body)).toEqual(verbose);
    const json = {
      text: 'Hi',
      logprobs: [{ token: 'Hi', logprob: -1 }],
      usage: { type: 'tokens', input_tokens: 3, output_tokens: 1, total_tokens: 4 },
      odd: 2,
    };
    expect(replyTo(transcribe, transcribe.decodeWhole(json, {}), {})).toEqual(json);
    const reply = replyTo(translate, translate.decodeWhole(verbose, {}), { response_format: 'verbose_json' });
    expect(reply.task).toBe('translate');
  });

  test('has all members of its segments where the provider gives some or none', () => {
    const segments = [
      { start: 29, end: 31, text: ' Hello' },
      { start: 31, end: 33, text: 'you you you', avg_logprob: -2 },
      {},
    ];
    const reply = replyTo(transcribe, transcribe.decodeWhole({ text: 'Hello you', segments }, {}), {
      response_format: 'verbose_json',
      temperature: '0.4',
      language: 'en',
    });
    const { segments: all } = verboseTranscript.parse(reply);
    expect(all).toMatchObject([
      { id: 0, seek: 0, avg_logprob: 0, temperature: 0.4, tokens: [] },
      { id: 1, seek: 3000, avg_logprob: -2 },
      { id: 2, seek: 0, text: '' },
    ]);
    expect(reply).toMatchObject({ language: 'en', duration: 0 });
    const translation = replyTo(translate, translate.decodeWhole({ text: 'Hello' }, {}), {
      response_format: 'verbose_json',
    });
    expect(verboseTranscript.parse(translation)).toMatchObject({ language: 'english' });
  });

  test('is charged for by its length or by its tokens, as the provider tells', () => {
    const usageOf = (body: JsonObject) =>
      transcribe.decodeWhole(body, {}).find((event) => event.type === 'usage')?.usage;
    expect(usageOf(verbose)).toMatchObject({ input: 0, output: 0, units: { seconds: 3662 } });
    expect(usageOf({ text: 'x', duration: '12.5' })).toMatchObject({ units: { seconds: 12.5 } });
    expect(
      usageOf({ text: 'x', usage: { type: 'tokens', input_tokens: 14, output_tokens: 5, total_tokens: 19 } }),
    ).toMatchObject({ input: 14, output: 5 });
    expect(usageOf({ text: 'x' })).toBeUndefined();
    expect(transcribe.usageTap().read('{"text":"x","duration":2.5}')).toMatchObject({
      units: { seconds: 2.5 },
    });
  });

  test('is made into subtitles and plain text where the model has none', () => {
    const made = (format: string) => {
      const encoder = transcribe.encodeWhole({
        model: 'm',
        body: { response_format: format },
        requestId: 'r',
        created: 1,
        inputEstimate: 0,
        drop: () => {},
      });
      for (const event of transcribe.decodeWhole(verbose, {})) encoder.event(event);
      const { contentType = '', bytes } = encoder.plain?.() ?? {};
      return [contentType, bytes?.toString()];
    };
    expect(made('text')).toEqual(['text/plain; charset=utf-8', 'Hello world\n']);
    expect(made('srt')[1]).toBe(
      '1\n00:00:00,000 --> 00:00:01,500\nHello\n\n2\n00:00:01,500 --> 01:01:01,500\nworld\n',
    );
    expect(made('vtt')).toEqual([
      'text/vtt; charset=utf-8',
      'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello\n\n00:00:01.500 --> 01:01:01.500\nworld\n',
    ]);
  });

  test('subtitles keep their order and never break their own form', () => {
    const segment = fc.record({
      start: fc.double({ min: 0, max: 1e5, noNaN: true }),
      end: fc.double({ min: 0, max: 1e5, noNaN: true }),
      text: fc.string(),
    });
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 10 }), (segments) => {
        expect(asVtt(segments).match(/-->/g)?.length ?? 0).toBe(segments.length);
        expect(
          asSrt(segments).match(/^\d{2,}:\d\d:\d\d,\d{3} --> \d{2,}:\d\d:\d\d,\d{3}$/gm)?.length ?? 0,
        ).toBe(segments.length);
      }),
      { seed: 20_261_121, numRuns: tries(200) },
    );
  });

  test('JSON without a text is none', () => {
    expect(() => transcribe.decodeWhole({ segments: [] }, {})).toThrow(
      expect.objectContaining({ origin: 'upstream' }),
    );
    expect(() => transcribe.decodeWhole({ error: { message: 'no' } }, {})).toThrow(GatewayError);
  });
});

describe('a stream of a transcript', () => {
  const context = { model: 'm', body: {}, requestId: 'r', created: 1, inputEstimate: 0, drop: () => {} };
  const frames: JsonObject[] = [
    { type: 'transcript.text.delta', delta: 'Hel', logprobs: [] },
    { type: 'transcript.text.segment', id: 'seg_1', start: 0, end: 1, speaker: 'A', text: 'Hel' },
    { type: 'transcript.text.delta', delta: 'lo' },
    {
      type: 'transcript.text.done',
      text: 'Hello',
      usage: { type: 'tokens', input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    },
  ];
  const decode = (list: readonly JsonObject[]): GatewayEvent[] => {
    const decoder = transcribe.decodeStream?.({});
    const events = list.flatMap((frame) => decoder?.frame({ data: JSON.stringify(frame) }) ?? []);
    return [...events, ...(decoder?.end() ?? [])];
  };
  const encode = (events: readonly GatewayEvent[]): WireFrame[] => {
    const encoder = transcribe.encodeStream?.(context);
    return [...events.flatMap((event) => encoder?.event(event) ?? []), ...(encoder?.end() ?? [])];
  };

  test('is the same there and back', () => {
    expect(encode(decode(frames))).toEqual(frames.map((json) => ({ json })));
  });

  test('that is cut never ends as if it were whole', () => {
    expect(() => decode(frames.slice(0, 3))).toThrow(expect.objectContaining({ code: 'upstream_cut' }));
    expect(() => decode([{ error: { message: 'x' } }])).toThrow(GatewayError);
  });

  test('is made of a whole reply where the provider has no streams', () => {
    expect(encode(transcribe.decodeWhole({ text: 'Hello' }, {}))).toEqual([
      { json: { type: 'transcript.text.delta', delta: 'Hello' } },
      { json: { type: 'transcript.text.done', text: 'Hello' } },
    ]);
  });

  test('says its last word once, whatever comes', () => {
    const event = fc.constantFrom<GatewayEvent>(...decode(frames));
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), fc.boolean(), (events, breaks) => {
        const encoder = transcribe.encodeStream?.(context);
        const written = events.flatMap((one) => encoder?.event(one) ?? []);
        written.push(
          ...((breaks ? encoder?.error(new GatewayError('upstream_cut', 'x')) : encoder?.end()) ?? []),
        );
        written.push(
          ...(encoder?.end() ?? []),
          ...(encoder?.error(new GatewayError('upstream_cut', 'x')) ?? []),
        );
        const last = written.filter((frame) =>
          /"transcript.text.done"|"error":\{/.test(JSON.stringify(frame)),
        );
        expect(last).toHaveLength(1);
        expect(written.at(-1)).toBe(last[0]);
      }),
      { seed: 20_261_121, numRuns: tries(200) },
    );
  });
});

describe('a request for speech', () => {
  const body: JsonObject = { model: 'm', input: 'Hello', voice: 'nova' };

  test.each<JsonObject>([
    body,
    {
      ...body,
      response_format: 'opus',
      speed: 0.25,
      instructions: 'calm',
      stream_format: 'sse',
      odd: { x: 1 },
    },
    { ...body, voice: { id: 'voice_1' }, response_format: 'wav' },
    { ...body, voice: 'a voice that only a provider knows', response_format: 'mulaw' },
  ])('%j is the same there and back', (wire) => {
    const request = speak.validate(wire, {});
    const { body: sent } = speak.encodeRequest(request, {
      model: 'm',
      stream: request.stream,
      traits: {},
      headers: {},
      unsupported: 'refuse',
      drop: () => {},
    });
    expect(sent).toEqual(wire);
  });

  test.each<[JsonObject, string]>([
    [{ input: 'x', voice: 'v' }, 'model'],
    [{ model: 'm', voice: 'v' }, 'input'],
    [{ model: 'm', input: '', voice: 'v' }, 'input'],
    [{ model: 'm', input: 'x'.repeat(4097), voice: 'v' }, 'input'],
    [{ model: 'm', input: 'x' }, 'voice'],
    [{ model: 'm', input: 'x', voice: 7 }, 'voice'],
    [{ model: 'm', input: 'x', voice: {} }, 'voice.id'],
    [{ ...body, speed: 0.2 }, 'speed'],
    [{ ...body, speed: 4.1 }, 'speed'],
    [{ ...body, response_format: 7 }, 'response_format'],
    [{ ...body, stream_format: 'ndjson' }, 'stream_format'],
  ])('%j names %s', (wire, param) => {
    expect(() => checked(speak, wire)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('counts characters as people do', () => {
    expect(() => speak.validate({ ...body, input: '😀'.repeat(4096) }, {})).not.toThrow();
    expect(speak.estimate?.(speak.validate({ ...body, input: 'né😀' }, {}))?.units).toEqual({
      characters: 3,
    });
  });

  test('for a model without events asks for the bytes', () => {
    expect(speak.passes?.({ stream_format: 'sse' }, { streamsSpeech: false })).toBe(false);
    const request = speak.validate({ ...body, stream_format: 'sse' }, {});
    const target = { model: 'm', stream: true, headers: {}, unsupported: 'refuse', drop: () => {} } as const;
    expect(speak.encodeRequest(request, { ...target, traits: { streamsSpeech: false } }).body).toEqual(body);
  });

  test('over generateContent says what it cannot carry', () => {
    const to = generateContent.codecs.speak as Codec<SpeakRequest>;
    const { encoded, losses } = encodedBy(speak, to, { ...body, speed: 2, instructions: 'Calmly', odd: 1 });
    expect(encoded).toMatchObject({
      path: '/models/m:generateContent',
      body: {
        contents: [{ parts: [{ text: 'Calmly: Hello' }] }],
        generationConfig: {
          responseModalities: ['AUDIO'],
          speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'nova' } } },
        },
      },
    });
    expect(losses).toEqual(['odd', 'speed', 'response_format']);
    expect(encodedBy(speak, to, { ...body, response_format: 'pcm' }).losses).toEqual([]);
  });
});

describe('speech', () => {
  const context = (body: JsonObject) => ({
    model: 'm',
    body,
    requestId: 'r',
    created: 1,
    inputEstimate: 0,
    drop: () => {},
  });

  test('from samples becomes a file that players know, unless samples were asked for', () => {
    const from = generateContent.codecs.speak as Codec<SpeakRequest>;
    const samples = Buffer.from([1, 0, 2, 0]);
    const inlineData = { mimeType: 'audio/L16;codec=pcm;rate=16000', data: samples.toString('base64') };
    const events = from.decodeWhole({ candidates: [{ content: { parts: [{ inlineData }] } }] }, {});
    const reply = (format?: string) => {
      const encoder = speak.encodeWhole(context(format === undefined ? {} : { response_format: format }));
      for (const event of events) encoder.event(event);
      return encoder.plain?.();
    };
    expect(reply('pcm')).toEqual({ contentType: 'audio/pcm', bytes: samples });
    expect(reply()?.contentType).toBe('audio/wav');
    expect(reply('wav')?.bytes.readUInt32LE(24)).toBe(16_000);
    expect(reply('wav')?.bytes.subarray(44)).toEqual(samples);
    expect(() => from.decodeWhole({ candidates: [{ finishReason: 'SAFETY' }] }, {})).toThrow('SAFETY');
  });

  test('bytes become events that hold the same bytes, however they were cut', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { minLength: 1 }), (chunks) => {
        const decoder = speak.decodeBytes?.({});
        const encoder = speak.encodeStream?.(context({}));
        const events = [
          ...chunks.flatMap((chunk) => decoder?.chunk(Buffer.from(chunk)) ?? []),
          ...(decoder?.end() ?? []),
        ];
        const frames = [...events.flatMap((event) => encoder?.event(event) ?? []), ...(encoder?.end() ?? [])];
        const sent = frames.flatMap((frame) =>
          'json' in frame && typeof frame.json.audio === 'string'
            ? [Buffer.from(frame.json.audio, 'base64')]
            : [],
        );
        expect(Buffer.concat(sent)).toEqual(Buffer.concat(chunks));
        expect(frames.at(-1)).toMatchObject({ json: { type: 'speech.audio.done' } });
      }),
      { seed: 20_261_121, numRuns: tries(200) },
    );
  });

  test('JSON, or nothing, is no speech', () => {
    expect(() => speak.decodeWhole({ hello: 1 }, {})).toThrow(
      expect.objectContaining({ origin: 'upstream' }),
    );
    expect(() => speak.decodeBytes?.({}).end()).toThrow(expect.objectContaining({ origin: 'upstream' }));
  });
});
