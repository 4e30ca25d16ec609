/** Encodes a request in the channel's format, and collects the fields that are dropped. */
import { GatewayError, isChat, type GatewayRequest, type UpstreamRequest, type Loss } from 'sluice';
import type { Codec, EncodedRequest, EncodeTarget } from 'sluice/channel-kit';
import { inClientWords } from './client-words.ts';
import { ReportedPaths, writeJson, type Call, type Target } from 'sluice/internal';
import type { TranslationOptions } from './options.ts';
import { withRoom } from './output-room.ts';
import { needsBytes } from './inline-media.ts';
import { asStreamed, settle } from './settle.ts';
import { undoingOf, type Undoing } from './undo-spelling.ts';
import { unreadOf, type Unread } from './unread.ts';

/** An encoded request, with the bytes of its body where they are written already. */
export type Encoded = EncodedRequest & {
  readonly written?: Buffer;
  /** True when a stream is requested from the provider. */
  readonly stream: boolean;
};

/** Encodes the decoded request, or a part of it, in the channel's format. Dropped fields are added to `losses` with paths of the client's format. */
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
 * Encodes a request whose long texts are not decoded, and inserts their bytes from the client's body. Undefined where that is not possible; `losses`
 * is unchanged then, and encoding the whole request shows the reason.
 */
export function encodeUnread(
  call: Call,
  target: Target,
  codec: Codec,
  options: TranslationOptions,
  losses: Loss[],
  { request, texts }: Unread,
): Encoded | undefined {
  // The output limit depends on the texts.
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

/** A request as it is sent to the channel, and the changes of names that the response must undo. */
export interface WrittenRequest {
  readonly upstream: UpstreamRequest;
  readonly undoing: Undoing;
}

/** Does the same as {@link encodeRequest}, and writes the body. */
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

/** Does the same as {@link encodeUnread}, and writes the body. */
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

/** Returns the function by which a codec reports dropped fields: each is added once, with its path in the client's format. */
export function losesInto(losses: Loss[], call: Call, codec: Codec): EncodeTarget['drop'] {
  // Made on first use: most calls lose nothing.
  let reportedPaths: ReportedPaths | undefined;
  return (path, kind = 'setting') => {
    const spelled = inClientWords(call.codec, path);
    reportedPaths ??= new ReportedPaths();
    if (reportedPaths.isNew(spelled))
      losses.push({ path: spelled, kind, from: call.codec.format, to: codec.format });
  };
}

/** Returns an encoded request as it is sent to the channel. */
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

/** Returns an error of an encoder with the path of the setting in the client's format. */
function respelled(error: unknown, codec: Codec): unknown {
  if (!(error instanceof GatewayError) || error.param?.startsWith('settings.') !== true) return error;
  const path = inClientWords(codec, error.param);
  return new GatewayError(error.code, error.message.replaceAll(error.param, path), {
    param: path,
    cause: error,
  });
}

/** Returns the client's headers. All values are texts, because Node joins repeated request headers. */
function plainHeaders(call: Call): Readonly<Record<string, string>> {
  return call.wire.headers as Readonly<Record<string, string>>;
}

export { plainHeaders };
