import { describe, expect, it, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Codec, Format, ReplyContext, RouteParams } from '../../../core/sdk/format.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { VideoReport, VideoRequest, VideoState, VideoTaskRequest } from '../../../core/model/video.ts';
import { fileURLToPath } from 'node:url';
import { discover } from '../../../core/config/discover.ts';

const folder = fileURLToPath(new URL('../../../core/formats/', import.meta.url));
const formats = (await discover(folder, 'folders')).found
  .map(({ value }) => value as Format)
  .filter(({ codecs }) => codecs['create-video'] !== undefined);
const names = formats.map(({ name }) => name);

function formatOf(name: string): Format {
  const format = formats.find((one) => one.name === name);
  if (format === undefined) throw new Error(`no format ${name}`);
  return format;
}
function creating(name: string): Codec<VideoRequest> {
  return formatOf(name).codecs['create-video'] as Codec<VideoRequest>;
}
function asking(name: string): Codec<VideoTaskRequest> {
  return formatOf(name).codecs['get-video'] as Codec<VideoTaskRequest>;
}

const context: ReplyContext = {
  model: 'm',
  body: {},
  requestId: 'req_1',
  created: 1_760_000_000,
  inputEstimate: 0,
  drop: () => {},
};

const target = {
  model: 'theirs',
  stream: false,
  traits: {},
  headers: {},
  unsupported: 'refuse',
  drop: () => {},
} as const;

function encoded(
  name: string,
  request: VideoRequest,
  losses: string[] = [],
  unsupported: 'refuse' | 'drop' = 'refuse',
) {
  const drop = (path: string): unknown => losses.push(path);
  return creating(name).encodeRequest(request, { ...target, unsupported, drop });
}

function taskBody(name: string, report: VideoReport): JsonObject {
  const encoder = asking(name).encodeWhole(context);
  encoder.event({ type: 'result', value: report });
  return encoder.end();
}

function understood(name: string, body: JsonObject): VideoReport {
  const [event] = asking(name).decodeWhole(body, {});
  if (event?.type !== 'result') throw new Error('no result');
  return event.value as VideoReport;
}

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk';
const url = 'https://img.example/a.png';

/** Each provider's words for a state, as it says them, and what they mean. */
const words: readonly (readonly [
  format: string,
  body: (word: string) => JsonObject,
  Readonly<Record<string, VideoState>>,
])[] = [
  [
    'videos',
    (status) => ({ id: 'x', status }),
    {
      queued: 'queued',
      in_progress: 'in_progress',
      completed: 'completed',
      failed: 'failed',
      cancelled: 'cancelled',
    },
  ],
  [
    'video-generations',
    (status) => ({ task_id: 'x', status }),
    {
      queued: 'queued',
      in_progress: 'in_progress',
      processing: 'in_progress',
      completed: 'completed',
      succeeded: 'completed',
      failed: 'failed',
      NOT_START: 'queued',
      SUBMITTED: 'queued',
      QUEUED: 'queued',
      IN_PROGRESS: 'in_progress',
      SUCCESS: 'completed',
      FAILURE: 'failed',
    },
  ],
  [
    'kling',
    (status) => ({ code: 0, data: { task_id: 'x', task_status: status } }),
    { submitted: 'queued', processing: 'in_progress', succeed: 'completed', failed: 'failed' },
  ],
  [
    'jimeng',
    (status) => ({ code: 10_000, data: { status } }),
    {
      in_queue: 'queued',
      generating: 'in_progress',
      done: 'completed',
      not_found: 'failed',
      expired: 'failed',
    },
  ],
  [
    'ark',
    (status) => ({ id: 'x', status }),
    {
      queued: 'queued',
      pending: 'queued',
      running: 'in_progress',
      processing: 'in_progress',
      succeeded: 'completed',
      failed: 'failed',
      expired: 'failed',
      cancelled: 'cancelled',
    },
  ],
  [
    'vidu',
    (state) => ({ id: 'x', state, creations: [] }),
    {
      created: 'queued',
      queueing: 'queued',
      processing: 'in_progress',
      success: 'completed',
      failed: 'failed',
      cancelled: 'cancelled',
    },
  ],
];

describe('states', () => {
  const rows = words.flatMap(([format, body, table]) =>
    Object.entries(table).map(([word, state]) => [format, word, state, body] as const),
  );
  it.each(rows)('%s: "%s" is %s', (format, word, state, body) => {
    expect(understood(format, body(word)).state).toBe(state);
  });

  it.each(words)('%s: a word that nobody knows says nothing', (format, body) => {
    expect(understood(format, body('sideways')).state).toBeUndefined();
  });

  const ours = words.flatMap(([format]) =>
    (['queued', 'in_progress', 'completed'] as const).map((state) => [format, state] as const),
  );
  it.each(ours)('%s tells its clients of %s in a word that it understands', (format, state) => {
    expect(understood(format, taskBody(format, { id: 'x', state })).state).toBe(state);
  });

  it.each(names.filter((name) => name !== 'jimeng'))(
    '%s: what has failed or was cancelled is over, and says why',
    (name) => {
      const error = { code: 'moon', message: 'No moon.' };
      expect(understood(name, taskBody(name, { id: 'x', state: 'failed', error })).state).toBe('failed');
      expect(JSON.stringify(taskBody(name, { id: 'x', state: 'failed', error }))).toContain('No moon.');
      expect(['failed', 'cancelled']).toContain(
        understood(
          name,
          taskBody(name, { id: 'x', state: 'cancelled', error: { code: 'cancelled', message: 'c' } }),
        ).state,
      );
    },
  );

  test('jimeng: what has failed is a code', () => {
    const body = taskBody('jimeng', {
      id: 'x',
      state: 'failed',
      error: { code: 'content_policy_violation', message: 'No.' },
    });
    expect(body).toMatchObject({ code: 50_511, status: 50_511, message: 'No.', request_id: 'req_1' });
    expect(() => understood('jimeng', body)).toThrow('No.');
  });
});

describe('refusals inside of a sound answer', () => {
  it.each([
    ['kling', { code: 1002, message: 'bad token' }, 'upstream_error'],
    ['kling', { code: 1102, message: 'pack used up' }, 'no_available_channel'],
    ['kling', { code: 1201, message: 'mode is wrong' }, 'invalid_request'],
    ['kling', { code: 1301, message: 'risky' }, 'content_policy_violation'],
    ['kling', { code: 1302, message: 'too fast' }, 'rate_limit_exceeded'],
    ['kling', { code: 5001, message: 'later' }, 'server_is_overloaded'],
    ['jimeng', { code: 50_411, message: 'Pre Img Risk Not Pass' }, 'content_policy_violation'],
    ['jimeng', { code: 50_429, message: 'qps' }, 'rate_limit_exceeded'],
    ['jimeng', { code: 50_500, message: 'oops' }, 'upstream_error'],
    ['ark', {}, 'upstream_error'],
    ['videos', {}, 'upstream_error'],
    ['vidu', { state: 'created' }, 'upstream_error'],
  ])('%s %o', (name, body, code) => {
    const decode = (): unknown => creating(name).decodeWhole(body as JsonObject, {});
    expect(decode).toThrow(GatewayError);
    try {
      decode();
    } catch (error) {
      expect(error).toMatchObject({ code, origin: 'upstream' });
    }
  });
});

const request: VideoRequest = {
  operation: 'create-video',
  format: 'neutral',
  model: 'm',
  prompt: 'the moon',
  images: [],
  seconds: 10,
  size: '1280x720',
  seed: 7,
};
const first = { kind: 'url', url } as const;
const second = { kind: 'data', data: png, mimeType: 'image/png' } as const;

describe('a request in the words of each provider', () => {
  it.each([
    [
      'videos',
      '/videos',
      { model: 'theirs', prompt: 'the moon', seconds: '10', size: '1280x720' },
      ['settings.seed'],
    ],
    [
      'video-generations',
      '/video/generations',
      { model: 'theirs', prompt: 'the moon', duration: 10, size: '1280x720', seed: 7 },
      [],
    ],
    [
      'kling',
      '/v1/videos/text2video',
      { model_name: 'theirs', prompt: 'the moon', duration: '10', aspect_ratio: '16:9' },
      ['settings.seed'],
    ],
    [
      'jimeng',
      '/',
      { req_key: 'theirs', prompt: 'the moon', seed: 7, aspect_ratio: '16:9', frames: 241 },
      [],
    ],
    [
      'ark',
      '/contents/generations/tasks',
      {
        model: 'theirs',
        content: [{ type: 'text', text: 'the moon' }],
        duration: 10,
        ratio: '16:9',
        resolution: '720p',
        seed: 7,
      },
      [],
    ],
    [
      'vidu',
      '/text2video',
      {
        model: 'theirs',
        prompt: 'the moon',
        duration: 10,
        seed: 7,
        aspect_ratio: '16:9',
        resolution: '720p',
      },
      [],
    ],
    [
      'generate-content',
      '/models/theirs:predictLongRunning',
      {
        instances: [{ prompt: 'the moon' }],
        parameters: { aspectRatio: '16:9', resolution: '720p', durationSeconds: 10, seed: 7 },
      },
      [],
    ],
  ])('%s', (name, path, body, lost) => {
    const losses: string[] = [];
    expect(encoded(name, request, losses)).toMatchObject({ path, body });
    expect(Object.keys(encoded(name, request).body).toSorted()).toEqual(Object.keys(body).toSorted());
    expect(losses).toEqual(lost);
  });

  test('images choose the path, the service and the place', () => {
    const with1 = { ...request, images: [second] };
    const with2 = { ...request, images: [second, { ...second }] };
    expect(encoded('kling', with1)).toMatchObject({ path: '/v1/videos/image2video', body: { image: png } });
    expect(encoded('kling', with2).body).toMatchObject({ image: png, image_tail: png });
    expect(encoded('kling', { ...request, images: [first] }).body.image).toBe(url);
    expect(encoded('vidu', with1)).toMatchObject({
      path: '/img2video',
      body: { images: [`data:image/png;base64,${png}`] },
    });
    expect(encoded('vidu', with2).path).toBe('/start-end2video');
    expect(encoded('vidu', { ...request, images: [first, first, first] }).path).toBe('/reference2video');
    expect(encoded('vidu', { ...with1, imageRole: 'reference' }).path).toBe('/reference2video');
    expect(encoded('ark', with2).body.content).toEqual([
      { type: 'text', text: 'the moon' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` }, role: 'first_frame' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` }, role: 'last_frame' },
    ]);
    const jimeng = (images: VideoRequest['images']): JsonObject =>
      creating('jimeng').encodeRequest({ ...request, images }, { ...target, model: 'jimeng_v30_1080' }).body;
    expect(jimeng([])).toMatchObject({ req_key: 'jimeng_t2v_v30_1080' });
    expect(jimeng([first])).toMatchObject({ req_key: 'jimeng_i2v_first_v30_1080', image_urls: [url] });
    expect(jimeng([second, second])).toMatchObject({
      req_key: 'jimeng_i2v_first_tail_v30_1080',
      binary_data_base64: [png, png],
    });
    const videoRequest = {
      operation: 'get-video',
      format: 'jimeng',
      model: 'jimeng_v30',
      id: 't',
      images: 1,
    } as const;
    expect(asking('jimeng').encodeRequest(videoRequest, target)).toMatchObject({
      query: { Action: 'CVSync2AsyncGetResult' },
      body: { req_key: 'jimeng_i2v_first_v30', task_id: 't' },
    });
    expect(asking('kling').encodeRequest({ ...videoRequest, format: 'kling' }, target)).toMatchObject({
      path: '/v1/videos/image2video/t',
      method: 'GET',
    });
    const form = encoded('videos', with1);
    expect(form.form?.map(({ name }) => name)).toEqual([
      'model',
      'prompt',
      'seconds',
      'size',
      'input_reference',
    ]);
    expect(form.form?.at(-1)).toMatchObject({ file: { mimeType: 'image/png', filename: 'reference.png' } });
    expect(encoded('videos', { ...request, images: [first] }).body.input_reference).toEqual({
      image_url: url,
    });
  });

  it.each([
    ['videos', [first, first]],
    ['kling', [first, first, first]],
    ['jimeng', [first, first, first]],
    ['generate-content', [first]],
  ] as const)('%s refuses images that it cannot take', (name, images) => {
    expect(() => encoded(name, { ...request, images })).toThrow(/cannot be sent/);
  });

  it.each(names)(
    '%s: what the client says in the provider’s words adds, and replaces nothing that costs',
    (name) => {
      const losses: string[] = [];
      const { body } = encoded(
        name,
        {
          ...request,
          metadata: {
            style: 'noir',
            duration: 60,
            seconds: '60',
            frames: 999,
            n: 9,
            callback_url: 'https://x',
          },
        },
        losses,
      );
      const text = JSON.stringify(body);
      expect(text).toContain('"style":"noir"');
      expect(text).not.toMatch(/60|999|https:\/\/x/);
      expect(losses).toEqual(
        expect.arrayContaining([
          'metadata.duration',
          'metadata.frames',
          'metadata.n',
          'metadata.callback_url',
        ]),
      );
    },
  );
});

/** Required fields of each format's clients, and invalid values. */
const wrong: readonly (readonly [string, JsonObject, RouteParams, string])[] = [
  ['videos', { model: 'm' }, {}, 'prompt'],
  ['videos', { prompt: 'x' }, {}, 'model'],
  ['videos', { model: 'm', prompt: 'x', size: 'wide' }, {}, 'size'],
  ['videos', { prompt: '' }, { id: 'video_1' }, 'prompt'],
  ['video-generations', { model: 'm', prompt: 'x', duration: 'long' }, {}, 'duration'],
  ['video-generations', { model: 'm', prompt: 'x', width: 100 }, {}, 'height'],
  ['video-generations', { model: 'm', prompt: 'x', image: 7 }, {}, 'image'],
  ['video-generations', { model: 'm', prompt: 'x', response_format: 'b64_json' }, {}, 'response_format'],
  ['kling', { prompt: 'x' }, { kind: 'text2video' }, 'model_name'],
  ['kling', { model_name: 'm', prompt: 'x' }, { kind: 'image2video' }, 'image'],
  ['kling', { model_name: 'm', prompt: 'x', cfg_scale: 2 }, { kind: 'text2video' }, 'cfg_scale'],
  ['kling', { model_name: 'm', prompt: 'x'.repeat(2501) }, { kind: 'text2video' }, 'prompt'],
  ['jimeng', { prompt: 'x' }, {}, 'req_key'],
  ['jimeng', { req_key: 'k', prompt: 'x', frames: 0 }, {}, 'frames'],
  ['jimeng', { req_key: 'k', prompt: 'x', image_urls: [png] }, {}, 'image_urls[0]'],
  ['ark', { model: 'm' }, {}, 'content'],
  ['ark', { model: 'm', content: [{ type: 'song' }] }, {}, 'content[0].type'],
  ['ark', { model: 'm', content: [{ type: 'image_url', image_url: {} }] }, {}, 'content[0].image_url.url'],
  ['vidu', { model: 'm', prompt: 'x', images: [url, url] }, { kind: 'img2video' }, 'images'],
  ['vidu', { model: 'm', prompt: 'x' }, { kind: 'reference2video' }, 'images'],
  ['generate-content', {}, { model: 'm' }, 'instances'],
  ['generate-content', { instances: [{}] }, { model: 'm' }, 'prompt'],
  [
    'generate-content',
    { instances: [{ prompt: 'x' }], parameters: { sampleCount: 3 } },
    { model: 'm' },
    'parameters.sampleCount',
  ],
];

describe('what is wrong is named', () => {
  it.each(wrong)('%s %o', (name, body, params, param) => {
    try {
      creating(name).peek(body, params);
      creating(name).validate(body, params);
    } catch (error) {
      expect(error).toMatchObject({ status: 400, param });
      const reply = formatOf(name).errorReply(error as GatewayError, 'req_1');
      expect(reply.status).toBe(400);
      expect(JSON.stringify(reply.body)).toContain((error as GatewayError).message.slice(0, 10));
      return;
    }
    throw new Error('It was not refused.');
  });
});

describe('a request of a format to a channel of the same', () => {
  it.each([
    [
      'kling',
      {
        model_name: 'm',
        prompt: 'x',
        mode: 'pro',
        duration: '10',
        camera_control: { type: 'simple' },
        image: url,
      },
      { kind: 'image2video' },
    ],
    ['jimeng', { req_key: 'theirs', prompt: 'x', frames: 121, seed: 3, aspect_ratio: '1:1' }, {}],
    [
      'ark',
      {
        model: 'm',
        content: [
          { type: 'text', text: 'x --ratio 16:9 --dur 5' },
          { type: 'image_url', image_url: { url }, role: 'last_frame' },
          { type: 'audio_url', audio_url: { url } },
        ],
        watermark: false,
        generate_audio: true,
      },
      {},
    ],
    [
      'vidu',
      { model: 'm', prompt: 'x', duration: 4, movement_amplitude: 'large', bgm: true },
      { kind: 'text2video' },
    ],
    ['videos', { model: 'm', prompt: 'x', seconds: '8', size: '1792x1024', style: 'noir' }, {}],
    [
      'generate-content',
      {
        instances: [
          { prompt: 'x', image: { bytesBase64Encoded: png, mimeType: 'image/png' }, video: { uri: 'u' } },
        ],
        parameters: { aspectRatio: '9:16', personGeneration: 'allow_all', negativePrompt: 'y' },
      },
      { model: 'm' },
    ],
  ])('%s keeps every word', (name, body, params) => {
    const losses: string[] = [];
    const decoded = creating(name).decodeRequest(body as JsonObject, params);
    const again = encoded(name, decoded, losses).body;
    const { model: _m, model_name: _n, req_key: _k, ...sent } = body as JsonObject;
    expect(again).toMatchObject(sent);
    expect(losses).toEqual([]);
  });

  test('an address to call back would be told the provider’s ids: it is left out, and that is said', () => {
    const losses: string[] = [];
    const body = { model_name: 'm', prompt: 'x', callback_url: 'https://client.example/hook' };
    expect(
      encoded('kling', creating('kling').decodeRequest(body, { kind: 'text2video' }), losses).body,
    ).not.toHaveProperty('callback_url');
    expect(losses).toEqual(['callback_url']);
  });

  test('fields that only one format knows are reported by the others', () => {
    const losses: string[] = [];
    const body = { model: 'm', content: [{ type: 'text', text: 'x --dur 5' }], watermark: false };
    const decoded = creating('ark').decodeRequest(body, {});
    expect(decoded).toMatchObject({ prompt: 'x', seconds: 5 });
    encoded('kling', decoded, losses);
    expect(losses).toEqual(['watermark']);
    expect(creating('ark').onlyNative?.({ content: [{ type: 'video_url' }] })).toMatchObject({
      param: 'content[0]',
    });
    expect(creating('ark').onlyNative?.(body)).toBeUndefined();
  });
});

test('what a video may cost is known before it is asked for', () => {
  const units = (name: string, body: JsonObject, params: RouteParams = {}): number | undefined =>
    creating(name).estimate?.(creating(name).decodeRequest(body, params)).units?.seconds;
  expect(units('videos', { model: 'm', prompt: 'x' })).toBe(4);
  expect(units('videos', { model: 'm', prompt: 'x', seconds: 12 })).toBe(12);
  expect(units('kling', { model_name: 'm', prompt: 'x', duration: '10' })).toBe(10);
  expect(units('jimeng', { req_key: 'm', prompt: 'x', frames: 241 })).toBe(10);
  expect(units('ark', { model: 'm', content: [{ type: 'text', text: 'x --dur 8' }] })).toBe(8);
  expect(units('vidu', { model: 'm', prompt: 'x' })).toBe(5);
});
