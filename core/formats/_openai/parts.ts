/** Reads the content parts of chat completions and Responses as blocks: data URLs, bare base64, audio formats and cache breakpoints. */
import { wrongType } from '../../sdk/errors.ts';
import type { Block, Source } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { given, readObjects, requiredString } from '../_shared/check.ts';
import { parseDataUrl, sniffBase64 } from '../_shared/data-url.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { setOf } from '../_shared/fields.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Content as blocks, and whether it was one string. */
export interface Content {
  readonly content: readonly Block[];
  readonly plain?: true;
}

/** Rules by which one of these formats reads the parts of a content. */
interface PartReading {
  readonly format: string;
  readonly leftovers: () => Leftovers;
  /** Members that mark the end of what is cached. */
  readonly marks: string;
  readonly cacheOf: (part: JsonObject, left: Leftovers) => Pick<Block, 'cache'>;
  /** Decoders by the type of a part: its other members, and its block. */
  readonly kinds: Readonly<Record<string, readonly [members: string, read: PartReader]>>;
  /** A part in the official words, where others are tolerated. */
  readonly official?: (part: JsonObject) => JsonObject;
}

/** Reads a part at a path; `left` collects its fields that the neutral model does not have. Throws 400 with the path. */
type PartReader = (part: JsonObject, at: string, left: Leftovers) => Block;

/**
 * Returns a decoder for the blocks of a `content` that is a string or a list of parts. An empty string gives no block; `plain` records that
 * it was a string. A part of an unknown type is passed on unchanged. The decoder throws 400 with the path.
 */
export function contentReader({
  format,
  leftovers,
  marks,
  cacheOf,
  kinds,
  official = (part) => part,
}: PartReading) {
  const readers = new Map(
    Object.entries(kinds).map(([type, [members, read]]) => [
      type,
      { known: setOf(`type ${members} ${marks}`), read },
    ]),
  );
  const decodePart = (written: JsonObject, at: string): Block => {
    const part = official(written);
    const reader = readers.get(requiredString(part.type, `${at}.type`));
    if (reader === undefined) return { type: 'opaque', format, value: part, at };
    const left = leftovers().take(part, reader.known);
    const block = reader.read(part, at, left);
    return { ...block, ...cacheOf(part, left), ...left.extra() };
  };
  return (content: Exclude<JsonValue, null>, at: string): Content => {
    if (typeof content === 'string')
      return { content: content === '' ? [] : [{ type: 'text', text: content, at }], plain: true };
    if (!Array.isArray(content)) throw wrongType(at, 'a string or an array');
    return { content: readObjects(content as readonly JsonValue[], at, decodePart) };
  };
}

/** Returns the neutral mark for `prompt_cache_breakpoint`. Other shapes stay an unknown field. */
export function breakpointOf(
  { prompt_cache_breakpoint: mark }: JsonObject,
  left: Leftovers,
): Pick<Block, 'cache'> {
  if (!given(mark)) return {};
  if (isObject(mark) && mark.mode === 'explicit' && Object.keys(mark).length === 1) return { cache: {} };
  left.put('prompt_cache_breakpoint', mark);
  return {};
}

/** Returns a URL, opened when it is a data URL. One that would not come back letter for letter is kept as it was. */
export function sourceOf(url: string, left: Leftovers): Source {
  const parsed = parseDataUrl(url);
  if (parsed === undefined) return { kind: 'url', url };
  const { mimeType, data } = parsed;
  if (url.length === mimeType.length + data.length + 13 && url.startsWith(`data:${mimeType};base64,`))
    return { kind: 'data', data, mimeType };
  left.put('$url', url);
  const shown = mimeType === 'text/plain' ? (sniffBase64(data) ?? mimeType) : mimeType;
  return { kind: 'data', data, mimeType: shown };
}

/** Reads `file_data` that is base64 without a data URL. The MIME type is detected from the bytes, else from the file's name. */
export function bareFile(data: string, name: string | undefined, left: Leftovers): Source {
  left.put('$bare', true);
  const mimeType =
    sniffBase64(data) ?? (name !== undefined && /\.txt$/i.test(name) ? 'text/plain' : 'application/pdf');
  return { kind: 'data', data, mimeType };
}

/** Returns true for what stands in `file_data` and is an address, with its data or without. */
export function isAddress(data: string): boolean {
  return /^(?:data:|https?:\/\/)/i.test(data);
}

/** Returns the type of sound of an `input_audio.format`. */
export function audioType(format: string): string {
  return `audio/${format.toLowerCase()}`;
}

const audioFormats = lookupTable<string>({
  mpeg: 'mp3',
  'x-wav': 'wav',
  wave: 'wav',
  'vnd.wave': 'wav',
  'x-mp3': 'mp3',
});

/** Returns the `input_audio.format` of a type of sound; WAV if it is unknown. */
export function audioFormat(mimeType = 'audio/wav'): string {
  const subtype = mimeType.split(/[;/]/)[1] ?? 'wav';
  return audioFormats[subtype] ?? subtype;
}
