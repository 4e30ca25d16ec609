/** Streams of images, in both directions. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { GatewayEvent } from '../../model/event.ts';
import type { ImageResult, GeneratedImage } from '../../model/image.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { sumUsage, type Usage } from '../../model/usage.ts';
import { chatErrorBody } from '../_openai/errors.ts';
import { Losses } from '../_shared/losses.ts';
import { extraOf } from '../_shared/spelling.ts';
import { readFrame } from '../_shared/stream-frames.ts';
import { upstreamError, truncatedResponse } from '../_shared/upstream-error/index.ts';
import type { Frame, ReplyContext, StreamDecoder, StreamEncoder, WireFrame } from '../../sdk/format.ts';
import { noImages, readFacts, writeFacts } from './reply.ts';
import { readUsage, writeUsage } from './usage.ts';
import { eventNames, formatName, type ImageOperation } from './wire.ts';

const none: readonly WireFrame[] = [];

/** Reads a stream of images: sketches, and a `result` for each image. */
export class ImageStreamDecoder implements StreamDecoder {
  readonly #name: string;
  /** True behind a sketch whose image has not come. */
  #open = false;
  #total: Usage | undefined;

  constructor(operation: ImageOperation) {
    this.#name = eventNames[operation];
  }

  frame(frame: Frame): readonly GatewayEvent[] {
    if (frame.data === '[DONE]') return [];
    const body = readFrame(frame);
    const { type, ...rest } = body;
    switch (type) {
      case 'error':
        throw upstreamError(200, JSON.stringify({ error: rest }));
      case `${this.#name}.partial_image`:
        return [this.#sketch(rest)];
      case `${this.#name}.completed`:
        return this.#image(rest);
      default:
        return [{ type: 'opaque', format: formatName, value: body }];
    }
  }

  end(): readonly GatewayEvent[] {
    if (this.#open || this.#total === undefined) {
      throw truncatedResponse();
    }
    return [];
  }

  #sketch({ b64_json: data, partial_image_index: index, ...rest }: JsonObject): GatewayEvent {
    this.#open = true;
    return {
      type: 'partial-image',
      data: typeof data === 'string' ? data : '',
      index: typeof index === 'number' ? index : 0,
      ...extraOf(formatName, rest),
    };
  }

  #image({ b64_json: base64, url, usage, ...rest }: JsonObject): readonly GatewayEvent[] {
    this.#open = false;
    const image: GeneratedImage = {
      ...(typeof base64 === 'string' ? { base64 } : {}),
      ...(typeof url === 'string' ? { url } : {}),
    };
    if (image.base64 === undefined && image.url === undefined) throw noImages();
    const usageObject = isObject(usage) ? usage : undefined;
    const own = readUsage(usageObject, 1, rest);
    this.#total = this.#total === undefined ? own : sumUsage(this.#total, own);
    const facts = readFacts(
      { ...rest, ...(usageObject === undefined ? {} : { $usage: usageObject }) },
      'created_at',
    );
    return [
      { type: 'usage', usage: this.#total },
      { type: 'result', value: { images: [image], ...facts } },
    ];
  }
}

/** Writes a stream of images. The last word on each image comes once; the stream ends with one, or with an error. */
export class ImageStreamEncoder implements StreamEncoder {
  readonly #name: string;
  readonly #context: ReplyContext;
  readonly #losses: Losses;
  /** Last image of a response that was not streamed. The usage may follow it. */
  #held: { readonly image: GeneratedImage; readonly result: ImageResult } | undefined;
  #usage: Usage | undefined;
  #open = false;
  #complete = false;
  #over = false;

  constructor(operation: ImageOperation, context: ReplyContext) {
    this.#name = eventNames[operation];
    this.#context = context;
    this.#losses = new Losses(formatName, context);
  }

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#over) return none;
    switch (event.type) {
      case 'partial-image':
        return [...this.#release(), this.#sketch(event)];
      case 'result':
        return this.#images(event.value as ImageResult);
      case 'usage':
        this.#usage = event.usage;
        return none;
      case 'opaque':
        return event.format === formatName ? [...this.#release(), opaque(event.value)] : none;
      default:
        return none;
    }
  }

  end(): readonly WireFrame[] {
    if (this.#over) return none;
    const last = this.#release();
    if (this.#complete && !this.#open) {
      this.#over = true;
      return last;
    }
    return [...last, ...this.error(noImages())];
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#over) return none;
    const last = this.#release();
    this.#over = true;
    return [...last, { event: 'error', json: { type: 'error', ...chatErrorBody(error) } }];
  }

  keepAlive(): readonly WireFrame[] {
    return none;
  }

  #sketch({ data, index, extra }: Extract<GatewayEvent, { type: 'partial-image' }>): WireFrame {
    this.#open = true;
    const type = `${this.#name}.partial_image`;
    return {
      event: type,
      json: {
        type,
        b64_json: data,
        created_at: this.#context.created,
        partial_image_index: index,
        ...extra?.[formatName],
      },
    };
  }

  #images(result: ImageResult): readonly WireFrame[] {
    this.#losses.dropForeign(result.extra);
    const frames: WireFrame[] = [];
    for (const image of result.images) {
      for (const frame of this.#release()) frames.push(frame);
      this.#held = { image, result };
    }
    // The usage is known, so the image need not be held for it.
    if (usageIn(result) !== undefined) for (const frame of this.#release()) frames.push(frame);
    return frames;
  }

  /** Returns the held image. Usage of several images together is added to the last one. */
  #release(): readonly WireFrame[] {
    const held = this.#held;
    if (held === undefined) return none;
    this.#held = undefined;
    this.#open = false;
    this.#complete = true;
    const { image, result } = held;
    const isLast = result.images.at(-1) === image;
    const usage = usageIn(result) ?? (isLast ? writeUsage(this.#usage, result.tokens) : undefined);
    const type = `${this.#name}.completed`;
    return [
      {
        event: type,
        json: {
          type,
          ...(image.base64 === undefined ? {} : { b64_json: image.base64 }),
          ...(image.url === undefined ? {} : { url: image.url }),
          ...writeFacts(result, 'created_at', this.#context.created),
          ...(usage === undefined ? {} : { usage }),
        },
      },
    ];
  }
}

function usageIn({ extra }: ImageResult): JsonObject | undefined {
  const usage = extra?.[formatName]?.$usage;
  return isObject(usage) ? usage : undefined;
}

function opaque(value: JsonObject): WireFrame {
  return typeof value.type === 'string' ? { event: value.type, json: value } : { json: value };
}
