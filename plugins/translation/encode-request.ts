import { GatewayError, isChat, type GatewayRequest, type UpstreamRequest, type Loss } from 'sluice';
import type { Codec, EncodedRequest, EncodeTarget } from 'sluice/channel-kit';
import { inClientWords } from './client-words.ts';
import { ToldPlaces, writeJson, type Call, type Target } from 'sluice/internal';
import type { TranslationOptions } from './options.ts';
import { withRoom } from './output-room.ts';
import { needsBytes } from './inline-media.ts';
import { asStreamed, settle } from './settle.ts';
import { undoingOf, type Undoing } from './undo-spelling.ts';
import { unreadOf, type Unread } from './unread.ts';

/** An encoded request, and its body as it is sent where that is written already. */
export type Encoded = EncodedRequest & {
  readonly written?: Buffer;
  /** True when the provider is asked for a stream. */
  readonly stream: boolean;
};

/** The decoded request, or a piece of it, in the channel's words. What is lost on the way is added to `losses` in the client's words. */
export function encodeRequest(
  call: Call,
  target: Target,
  codec: Codec,
  options: TranslationOptions,
  losses: Loss[],
  request: GatewayRequest = call.request,
): Encoded {
  try {
    const drop = losesInto(losses, call, codec);
    const settled = isChat(request)
      ? settle(asStreamed(request, call), target.traits, codec, options, drop)
      : { request, traits: target.traits, stream: call.stream };
    const { stream } = settled;
    const encoded = codec.encodeRequest(settled.request, {
      model: target.model,
      stream,
      traits: withRoom(request, settled.traits),
      headers: plainHeaders(call),
      unsupported: options.unsupported,
      drop,
    });
    return { ...encoded, stream };
  } catch (error) {
    throw respelled(error, call.codec);
  }
}

/**
 * A request without its long texts in the channel's words, with the client's own bytes in their place. Undefined, and nothing is lost, where
 * that cannot be: whoever encodes all of it finds out why.
 */
export function encodeUnread(
  call: Call,
  target: Target,
  codec: Codec,
  options: TranslationOptions,
  losses: Loss[],
  { request, texts }: Unread,
): Encoded | undefined {
  // What room an answer has is a matter of the words.
  if (withRoom(request, target.traits, call.omittedBytes) !== target.traits) return undefined;
  const lost: Loss[] = [];
  try {
    const encoded = encodeRequest(call, target, codec, options, lost, request);
    const written = texts.write(encoded.body);
    for (const loss of lost) losses.push(loss);
    return { ...encoded, written };
  } catch {
    return undefined;
  }
}

/** A request as it goes to the channel, and what is left to know of it. */
export interface WrittenRequest {
  readonly upstream: UpstreamRequest;
  readonly undoing: Undoing;
}

/** {@link encodeRequest}, and the bytes of it. */
export function writeRequest(
  call: Call,
  target: Target,
  codec: Codec,
  options: TranslationOptions,
  losses: Loss[],
  request: GatewayRequest,
): WrittenRequest {
  return writtenOf(call, target, codec, encodeRequest(call, target, codec, options, losses, request));
}

/** {@link encodeUnread}, and the bytes of it. */
export function writeUnread(
  call: Call,
  target: Target,
  codec: Codec,
  options: TranslationOptions,
  losses: Loss[],
): WrittenRequest | undefined {
  const unread = unreadOf(call, codec);
  if (unread === undefined || needsBytes(call, codec, target)) return undefined;
  const encoded = encodeUnread(call, target, codec, options, losses, unread);
  return encoded === undefined ? undefined : writtenOf(call, target, codec, encoded);
}

function writtenOf(call: Call, target: Target, codec: Codec, encoded: Encoded): WrittenRequest {
  return { upstream: upstreamRequest(call, target, codec, encoded), undoing: undoingOf(encoded) };
}

/** What a codec is given to report losses to: each is added once, in the client's words. */
export function losesInto(losses: Loss[], call: Call, codec: Codec): EncodeTarget['drop'] {
  // Made on first use: most calls lose nothing.
  let told: ToldPlaces | undefined;
  return (path, kind = 'setting') => {
    const spelled = inClientWords(call.codec, path);
    told ??= new ToldPlaces();
    if (told.isNew(spelled)) losses.push({ path: spelled, kind, from: call.codec.format, to: codec.format });
  };
}

/** An encoded request as it goes to the channel. */
export function upstreamRequest(call: Call, target: Target, codec: Codec, encoded: Encoded): UpstreamRequest {
  const { path, query, headers, method, form, body, written, stream } = encoded;
  return {
    operation: call.operation,
    format: codec.format,
    model: target.model,
    stream,
    path,
    query: query ?? {},
    headers: headers ?? {},
    ...(method === undefined ? {} : { method }),
    body:
      form ??
      written ??
      (method === undefined || method === 'POST' ? writeJson(body, call.wire.bytes.length) : ''),
  };
}

/** Encoders name settings neutrally; the client reads its own words. */
function respelled(error: unknown, codec: Codec): unknown {
  if (!(error instanceof GatewayError) || error.param?.startsWith('settings.') !== true) return error;
  const path = inClientWords(codec, error.param);
  return new GatewayError(error.code, error.message.replaceAll(error.param, path), {
    param: path,
    cause: error,
  });
}

/** The client's headers. Node joins repeated ones itself; the one that it leaves as a list is a response header. */
function plainHeaders(call: Call): Readonly<Record<string, string>> {
  return call.wire.headers as Readonly<Record<string, string>>;
}

export { plainHeaders };
