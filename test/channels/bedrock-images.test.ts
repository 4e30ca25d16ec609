import { crc32, deflateSync, inflateSync } from 'node:zlib';
import * as fc from 'fast-check';
import { toFile } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { blackAndWhite } from '../../channels/bedrock/masks.ts';
import bedrock from '../../channels/bedrock/index.ts';
import { openai } from '../clients/sdks.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { tries } from '../support/tries.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

type Json = Record<string, unknown>;
type Edit = Parameters<ReturnType<typeof openai>['images']['edit']>[0];

function chunk(type: string, data = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** A PNG of these lines, each with its filter and bytes of pixels. */
function png(width: number, type: 2 | 4 | 6, lines: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(lines.length, 4);
  head[8] = 8;
  head[9] = type;
  const start = Buffer.from('89504e470d0a1a0a', 'hex');
  const data = deflateSync(Buffer.concat(lines));
  const half = Math.ceil(data.length / 2);
  // Data may come in several pieces.
  const pieces = [data.subarray(0, half), data.subarray(half)].map((piece) => chunk('IDAT', piece));
  return Buffer.concat([start, chunk('IHDR', head), ...pieces, chunk('IEND')]);
}

/** A line as a PNG has it, filtered by one of the five ways. */
function filtered(filter: number, line: Buffer, above: Buffer, bytes: number): Buffer {
  const at = (from: Buffer, index: number): number => (index < 0 ? 0 : (from[index] ?? 0));
  const guesses: readonly ((left: number, up: number, corner: number) => number)[] = [
    () => 0,
    (left) => left,
    (_left, up) => up,
    (left, up) => Math.floor((left + up) / 2),
    (left, up, corner) => {
      const first = [left, up, corner];
      const away = first.map((one) => Math.abs(left + up - corner - one));
      return first[away.indexOf(Math.min(...away))] ?? 0;
    },
  ];
  const out = line.map(
    (value, index) =>
      value -
      (guesses[filter]?.(
        at(line, index - bytes),
        at(above, index),
        index < bytes ? 0 : at(above, index - bytes),
      ) ?? 0),
  );
  return Buffer.concat([Buffer.from([filter]), out]);
}

const base64 = (bytes: Buffer): string => bytes.toString('base64');

describe('a mask in black and white', () => {
  test('is that of a PNG with transparency, whatever its colours and filters', () => {
    const masks = fc
      .record({
        type: fc.constantFrom(4, 6) as fc.Arbitrary<4 | 6>,
        width: fc.integer({ min: 1, max: 9 }),
        height: fc.integer({ min: 1, max: 9 }),
        change: fc.constantFrom('black', 'white') as fc.Arbitrary<'black' | 'white'>,
      })
      .chain(({ type, width, height, change }) => {
        const bytes = type === 4 ? 2 : 4;
        const pixel = fc.record({
          alpha: fc.constantFrom(0, 255),
          rest: fc.uint8Array({ minLength: bytes - 1, maxLength: bytes - 1 }),
        });
        const line = fc.record({
          filter: fc.integer({ min: 0, max: 4 }),
          pixels: fc.array(pixel, { minLength: width, maxLength: width }),
        });
        return fc.record({
          type: fc.constant(type),
          width: fc.constant(width),
          change: fc.constant(change),
          lines: fc.array(line, { minLength: height, maxLength: height }),
        });
      });
    fc.assert(
      fc.property(masks, ({ type, width, change, lines }) => {
        const bytes = type === 4 ? 2 : 4;
        const rows = lines.map(({ pixels }) =>
          Buffer.concat(pixels.map(({ rest, alpha }) => Buffer.from([...rest, alpha]))),
        );
        const coded = lines.map(({ filter }, index) =>
          filtered(
            filter,
            rows[index] ?? Buffer.alloc(0),
            rows[index - 1] ?? Buffer.alloc(width * bytes),
            bytes,
          ),
        );
        const file = base64(png(width, type, coded));
        const made = blackAndWhite({ mimeType: 'image/png', data: file }, change);
        const alphas = lines.flatMap(({ pixels }) => pixels.map(({ alpha }) => alpha));
        if (alphas.every((alpha) => alpha === 255)) {
          expect(made).toBe(file);
          return;
        }
        const grey = Buffer.from(made, 'base64');
        const size = grey.readUInt32BE(33);
        const read = inflateSync(grey.subarray(41, 41 + size));
        const colours = lines.flatMap((_line, y) => [
          ...read.subarray(y * (width + 1) + 1, (y + 1) * (width + 1)),
        ]);
        expect(colours).toEqual(alphas.map((alpha) => ((alpha === 0) === (change === 'white') ? 255 : 0)));
      }),
      { numRuns: tries(400) },
    );
  });

  test('is the given one where that has no transparency, or cannot be read', () => {
    const bad = [
      base64(png(1, 2, [Buffer.from([0, 0, 0, 0])])),
      base64(png(9, 6, [Buffer.from([0, 0, 0, 0, 0])])),
      base64(png(1, 6, [Buffer.from([7, 0, 0, 0, 0])])),
      base64(Buffer.from('no image')),
      '',
    ];
    for (const data of bad) expect(blackAndWhite({ mimeType: 'image/png', data }, 'black')).toBe(data);
    expect(blackAndWhite({ mimeType: 'image/jpeg', data: 'abcd' }, 'black')).toBe('abcd');
  });
});

describe('images are changed', () => {
  const image = png(1, 2, [Buffer.from([0, 1, 2, 3])]);
  // The left pixel is transparent.
  const mask = png(2, 6, [Buffer.from([0, 9, 9, 9, 0, 9, 9, 9, 255])]);
  const grey = (...pixels: readonly number[]) => ({
    pixels: [...pixels],
  });
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let answer: Json;

  beforeAll(async () => {
    upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
    gateway = await startGateway({
      channels: [bedrock({ region: 'us-east-1', key: 'k', baseUrl: upstream.url })],
    });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });
  beforeEach(() => {
    upstream.requests.length = 0;
    answer = { images: ['iVBORw0KGgo='], finish_reasons: [null] };
  });

  const file = (bytes: Buffer): Promise<File> => toFile(bytes, 'a.png', { type: 'image/png' });

  /** Edits an image and returns the request to Bedrock, with the pixels of a mask instead of its file. */
  async function editAndReadRequest(fields: Json): Promise<Json> {
    const reply = await openai(gateway).images.edit({ prompt: 'A cat', ...fields } as unknown as Edit);
    expect(reply).toMatchObject({ data: [{ b64_json: 'iVBORw0KGgo=' }] });
    const seen = upstream.requests.at(-1);
    expect(seen?.url).toBe(`/model/${encodeURIComponent(String(fields['model']))}/invoke`);
    return JSON.parse(String(seen?.body), (name, value: unknown) =>
      name === 'maskImage' || name === 'mask' ? pixelsOf(String(value)) : value,
    ) as Json;
  }

  function pixelsOf(data: string): unknown {
    const bytes = Buffer.from(data, 'base64');
    return { pixels: [...inflateSync(bytes.subarray(41, 41 + bytes.readUInt32BE(33))).subarray(1)] };
  }

  const canvas = 'amazon.nova-canvas-v1:0';

  test('by Nova Canvas inside a mask, whose transparency is black to it', async () => {
    const sent = await editAndReadRequest({
      model: canvas,
      image: await file(image),
      mask: await file(mask),
      n: 2,
      quality: 'high',
      negativeText: 'dogs',
      seed: 7,
    });
    expect(sent).toEqual({
      taskType: 'INPAINTING',
      inPaintingParams: {
        text: 'A cat',
        image: base64(image),
        maskImage: grey(0, 255),
        negativeText: 'dogs',
      },
      imageGenerationConfig: { numberOfImages: 2, quality: 'premium', seed: 7 },
    });
  });

  test('by Nova Canvas where words say, outside a mask, and without their background', async () => {
    expect(
      await editAndReadRequest({ model: canvas, image: await file(image), maskPrompt: 'the dog' }),
    ).toMatchObject({
      taskType: 'INPAINTING',
      inPaintingParams: { maskPrompt: 'the dog' },
    });
    const outside = { taskType: 'OUTPAINTING', outPaintingMode: 'PRECISE' };
    expect(
      await editAndReadRequest({
        model: canvas,
        image: await file(image),
        mask: await file(mask),
        ...outside,
      }),
    ).toMatchObject({
      taskType: 'OUTPAINTING',
      outPaintingParams: { maskImage: grey(255, 0), outPaintingMode: 'PRECISE' },
    });
    expect(
      await editAndReadRequest({ model: canvas, image: await file(image), taskType: 'BACKGROUND_REMOVAL' }),
    ).toEqual({
      taskType: 'BACKGROUND_REMOVAL',
      backgroundRemovalParams: { image: base64(image) },
    });
  });

  test('by Nova Canvas as variations, of several images and in other sizes', async () => {
    const sent = await editAndReadRequest({
      model: canvas,
      image: [await file(image), await file(image)],
      size: '512x1024',
      similarityStrength: 0.4,
    });
    expect(sent).toEqual({
      taskType: 'IMAGE_VARIATION',
      imageVariationParams: {
        text: 'A cat',
        images: [base64(image), base64(image)],
        similarityStrength: 0.4,
      },
      imageGenerationConfig: { numberOfImages: 1, width: 512, height: 1024 },
    });
    const varied = await openai(gateway).images.createVariation({ model: canvas, image: await file(image) });
    expect(varied.data?.[0]?.b64_json ?? varied.data?.[0]?.url).toContain('iVBORw0KGgo=');
    expect(JSON.parse(String(upstream.requests.at(-1)?.body))).toEqual({
      taskType: 'IMAGE_VARIATION',
      imageVariationParams: { images: [base64(image)] },
      imageGenerationConfig: { numberOfImages: 1 },
    });
  });

  test.each([
    [
      'us.stability.stable-image-inpaint-v1:0',
      { grow_mask: 5 },
      { prompt: 'A cat', image: base64(image), mask: grey(255, 0), grow_mask: 5 },
    ],
    ['us.stability.stable-image-erase-object-v1:0', {}, { image: base64(image), mask: grey(255, 0) }],
  ])('by %s inside a mask, whose transparency is white to it', async (model, own, body) => {
    expect(
      await editAndReadRequest({ model, image: await file(image), mask: await file(mask), ...own }),
    ).toEqual(body);
  });

  test.each([
    [
      'us.stability.stable-image-search-replace-v1:0',
      { search_prompt: 'dog', output_format: 'webp' },
      { prompt: 'A cat', image: base64(image), search_prompt: 'dog', output_format: 'webp' },
    ],
    [
      'us.stability.stable-outpaint-v1:0',
      { left: 20, up: 10 },
      { prompt: 'A cat', image: base64(image), left: 20, up: 10 },
    ],
    ['us.stability.stable-image-remove-background-v1:0', {}, { image: base64(image) }],
    [
      'stability.sd3-5-large-v1:0',
      { strength: 0.5 },
      { prompt: 'A cat', mode: 'image-to-image', strength: 0.5, image: base64(image) },
    ],
  ])('by %s', async (model, own, body) => {
    expect(await editAndReadRequest({ model, image: await file(image), ...own })).toEqual(body);
  });

  test('by Stability’s transfer of a style, from the second image', async () => {
    const style = png(1, 2, [Buffer.from([0, 4, 5, 6])]);
    expect(
      await editAndReadRequest({
        model: 'us.stability.stable-style-transfer-v1:0',
        image: [await file(image), await file(style)],
        style_strength: 0.9,
      }),
    ).toEqual({
      prompt: 'A cat',
      init_image: base64(image),
      style_image: base64(style),
      style_strength: 0.9,
    });
  });

  test('and what a model has no place for is told, or refused', async () => {
    const lost = await openai(gateway)
      .images.edit({
        model: canvas,
        prompt: 'A cat',
        image: await file(image),
        mask: await file(mask),
        size: '256x256',
      })
      .withResponse();
    expect(lost.response.headers.get('x-sluice-loss')).toBe('size');
    const several = [await file(image), await file(image)];
    for (const [fields, message] of [
      [{ model: canvas, image: several, mask: await file(mask) }, /more than one image/],
      [{ model: canvas, image: several[0], taskType: 'PAINT' }, /taskType must be IMAGE_VARIATION/],
      [{ model: canvas, image: several[0], taskType: 'constructor' }, /taskType must be/],
      [{ model: 'us.stability.stable-outpaint-v1:0', image: several[0], mask: several[0] }, /a mask/],
      [{ model: 'us.stability.stable-outpaint-v1:0', image: several[0], n: 2 }, /n must be 1/],
    ] as const) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(
        openai(gateway).images.edit({ prompt: 'A cat', ...fields } as unknown as Edit),
      ).rejects.toMatchObject({ status: 400, message: expect.stringMatching(message) });
    }
    await expect(
      openai(gateway).images.generate({ model: 'us.stability.stable-outpaint-v1:0', prompt: 'A cat' }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/ask \/v1\/images\/edits/) });
  });

  test('and one that was filtered is a refusal', async () => {
    answer = { finish_reasons: ['Filter reason: input image'] };
    await expect(
      openai(gateway).images.edit({ model: canvas, prompt: 'A cat', image: await file(image) }),
    ).rejects.toMatchObject({ status: 400, code: 'content_policy_violation' });
  });
});
