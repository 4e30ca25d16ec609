/** Replies with speech, as bytes or as a stream of events. */
import { GatewayError } from '../../../sdk/errors.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import { parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import type { Usage } from '../../../model/usage.ts';
import { chatErrorBody } from '../../_openai/errors.ts';
import { throwIfError, truncatedResponse, unusableResponse } from '../../_shared/upstream-error/index.ts';
import { asWave } from '../../_shared/speech.ts';
import { readFrame } from '../../_shared/stream-frames.ts';
import { noUsage, readTokenUsage } from '../../_shared/usage.ts';
import type {
  Frame,
  PlainReply,
  ReplyContext,
  StreamDecoder,
  StreamEncoder,
  UsageTap,
  WholeEncoder,
  WireFrame,
} from '../../../sdk/format.ts';
import { formatName, pcmRate, speechTypes } from '../wire.ts';

const none: readonly WireFrame[] = [];
const inBlock = { block: 0, choice: 0 } as const;

function noSpeech(): GatewayError {
  return unusableResponse('gave no speech');
}

/** Throws the error in a JSON body, because JSON in place of audio is always an error. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  throw noSpeech();
}

/** Reads the bytes of a file as they come. */
export class SpeechBytesDecoder {
  #begun = false;
  /** Base64 is written in threes of bytes. */
  #rest: Buffer = Buffer.alloc(0);

  chunk(bytes: Buffer): readonly GatewayEvent[] {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const whole = all.length - (all.length % 3);
    this.#rest = all.subarray(whole);
    const start: GatewayEvent[] = this.#begun ? [] : [{ type: 'media-start', ...inBlock, media: 'audio' }];
    this.#begun = true;
    if (whole === 0) return start;
    return [...start, { type: 'media-delta', ...inBlock, data: all.toString('base64', 0, whole) }];
  }

  end(): readonly GatewayEvent[] {
    if (!this.#begun) throw noSpeech();
    const rest = this.#rest.toString('base64');
    return [
      ...(rest === '' ? [] : [{ type: 'media-delta', ...inBlock, data: rest } as const]),
      { type: 'media-end', ...inBlock },
    ];
  }
}

/** Reads a stream of speech. */
export class SpeechStreamDecoder implements StreamDecoder {
  #begun = false;
  #done = false;

  frame(frame: Frame): readonly GatewayEvent[] {
    if (frame.data === '[DONE]') return [];
    const body = readFrame(frame);
    if (body.type === 'speech.audio.done') {
      this.#done = true;
      const usage = isObject(body.usage) ? readTokenUsage(body.usage, formatName) : undefined;
      return [
        ...(this.#begun ? [{ type: 'media-end', ...inBlock } as const] : []),
        ...(usage === undefined ? [] : [{ type: 'usage', usage } as const]),
      ];
    }
    if (body.type !== 'speech.audio.delta' || typeof body.audio !== 'string')
      return [{ type: 'opaque', format: formatName, value: body }];
    const delta: GatewayEvent = { type: 'media-delta', ...inBlock, data: body.audio };
    if (this.#begun) return [delta];
    this.#begun = true;
    return [{ type: 'media-start', ...inBlock, media: 'audio' }, delta];
  }

  end(): readonly GatewayEvent[] {
    if (this.#done) return [];
    throw truncatedResponse();
  }
}

/** Returns the media type of raw samples, with their rate: `audio/L16;codec=pcm;rate=24000`. */
function rateOf(mimeType: string | undefined): number | undefined {
  if (mimeType === undefined || !/^audio\/(l16|pcm)\b/i.test(mimeType)) return undefined;
  const rate = Number(/rate=(\d{1,6})\b/.exec(mimeType)?.[1] ?? pcmRate);
  return rate === 0 ? pcmRate : rate;
}

/** Writes speech as a file: in the wished format where the provider gave that, else WAV around the samples. */
export function encodeWhole({ body }: ReplyContext): WholeEncoder {
  const format = typeof body.response_format === 'string' ? body.response_format : 'mp3';
  const pieces: Buffer[] = [];
  let mimeType: string | undefined;
  const reply = (): PlainReply => {
    const bytes = Buffer.concat(pieces);
    if (bytes.length === 0) throw noSpeech();
    const rate = rateOf(mimeType);
    if (rate !== undefined && format !== 'pcm')
      return { contentType: 'audio/wav', bytes: asWave(bytes, rate) };
    return {
      contentType: mimeType !== undefined && rate === undefined ? declaredType(mimeType) : typeOf(format),
      bytes,
    };
  };
  return {
    event(event) {
      if (event.type === 'media-start') mimeType ??= event.mimeType;
      if (event.type === 'media-delta' && event.data !== undefined)
        pieces.push(Buffer.from(event.data, 'base64'));
    },
    plain: reply,
    end: () => ({}),
  };
}

/** Returns a provider's word for its bytes, where it names a kind of sound and can stand in a header. */
function declaredType(mimeType: string): string {
  return /^audio\/[\w.+-]+(?: *;[ -~]*)?$/i.test(mimeType) ? mimeType : 'application/octet-stream';
}

function typeOf(format: string): string {
  return (Object.hasOwn(speechTypes, format) ? speechTypes[format] : undefined) ?? 'application/octet-stream';
}

/** Writes speech as a stream of events. */
export class SpeechStreamEncoder implements StreamEncoder {
  #usage: Usage | undefined;
  #begun = false;
  #over = false;

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#over) return none;
    if (event.type === 'usage') this.#usage = event.usage;
    if (event.type === 'opaque' && event.format === formatName) return [{ json: event.value }];
    if (event.type !== 'media-delta' || event.data === undefined) return none;
    this.#begun = true;
    return [{ json: { type: 'speech.audio.delta', audio: event.data } }];
  }

  end(): readonly WireFrame[] {
    if (this.#over) return none;
    if (!this.#begun) throw noSpeech();
    this.#over = true;
    const { input, output, format, raw } = this.#usage ?? noUsage;
    const usage =
      format === formatName && raw !== undefined
        ? raw
        : { input_tokens: input, output_tokens: output, total_tokens: input + output };
    return [{ json: { type: 'speech.audio.done', usage } }];
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#over) return none;
    this.#over = true;
    return [{ json: chatErrorBody(error) }];
  }

  keepAlive(): readonly WireFrame[] {
    return none;
  }
}

/** Reads usage of a stream that passes through. Files tell none. */
export function usageTap(): UsageTap {
  return {
    read(data) {
      const usage = parseObject(data)?.usage;
      return isObject(usage) ? readTokenUsage(usage, formatName) : undefined;
    },
  };
}
