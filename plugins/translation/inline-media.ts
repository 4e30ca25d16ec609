/** Fetches media that a request names by URL, for targets that need the bytes. */
import { firstValueFrom, from, mergeMap, toArray } from 'rxjs';
import {
  chatOf,
  GatewayError,
  isChat,
  isObject,
  type Block,
  type JsonValue,
  type Message,
  type MediaBlock,
  type Loss,
} from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import type { Call, InternalTools, Target } from 'sluice/internal';
import type { Media } from './core-types.ts';
import type { TranslationOptions } from './options.ts';

/** Maximum number of fetches of one call at the same time. */
const atOnce = 4;

type Linked = MediaBlock & { readonly source: Extract<MediaBlock['source'], { kind: 'url' }> };

/**
 * Returns true when the request holds media by URL of which this target wants the bytes. Where the client speaks the channel's format only the model's
 * traits can want them.
 */
export function needsBytes(call: Call, codec: Codec, { traits }: Target): boolean {
  if (codec.format === call.codec.format && traits.fetchesUrls !== false) return false;
  // The outline contains all URLs.
  const { outline: request } = call;
  if (!isChat(request)) return false;
  const wanted = wantedOf(codec, traits);
  const holds = (block: Block): boolean =>
    block.type === 'tool-result' ? block.content.some(holds) : wanted(block);
  return [...request.system, ...request.messages].some(({ content }) => content.some(holds));
}

function wantedOf(codec: Codec, traits: Target['traits']): (block: Block) => block is Linked {
  return (block): block is Linked => {
    if (!isMedia(block) || block.source.kind !== 'url') return false;
    return codec.wantsBytes?.(block, traits) ?? traits.fetchesUrls === false;
  };
}

function isMedia(block: Block): block is MediaBlock {
  return block.type === 'image' || block.type === 'audio' || block.type === 'video' || block.type === 'file';
}

/** Services and options for fetching media. */
export interface InlineOptions {
  readonly codec: Codec;
  readonly target: Target;
  readonly chosen: TranslationOptions;
  readonly tools: InternalTools;
  readonly losses: Loss[];
}

/**
 * Returns the call with fetched bytes in place of the URLs that the target does not take. Throws 400 with the path of the URL in the client's
 * request.
 */
export async function inlineMedia(call: Call, options: InlineOptions): Promise<Call> {
  const { codec, target, chosen, tools, losses } = options;
  const { system, messages } = chatOf(call);
  const wanted = wantedOf(codec, target.traits);
  const blocks = [...system, ...messages].flatMap(({ content }) => content.flatMap(linkedIn(wanted)));
  const { enabled, total } = tools.settings.fetch;
  let replace: (block: Linked) => Block | undefined;
  if (!enabled && chosen.unsupported === 'drop') {
    replace = ({ at }) => {
      losses.push({ path: at ?? 'messages', kind: 'content', from: call.codec.format, to: codec.format });
      return undefined;
    };
  } else {
    const fetched = await firstValueFrom(
      from(blocks).pipe(
        mergeMap(async (block) => [block, await mediaOf(call, block, tools)] as const, atOnce),
        toArray(),
      ),
    );
    const media = new Map<Block, Media>(fetched);
    checkTotal(call, blocks, media, total);
    const texts = new Map<Media, string>();
    replace = (block) => inlined(block, media.get(block), texts);
  }
  const rewritten = (message: Message): Message => {
    const content = contentWith(message.content, wanted, replace);
    return content === message.content ? message : { ...message, content };
  };
  return call.with({ system: system.map(rewritten), messages: messages.map(rewritten) });
}

function linkedIn(wanted: (block: Block) => block is Linked): (block: Block) => readonly Linked[] {
  return function linked(block): readonly Linked[] {
    if (block.type === 'tool-result') return block.content.flatMap(linked);
    return wanted(block) ? [block] : [];
  };
}

function mediaOf(call: Call, block: Linked, { fetchMedia }: InternalTools): Promise<Media> {
  const { url } = block.source;
  return fetchMedia(call, url, { kinds: [block.type], at: urlPath(call, block) });
}

/** Throws 400 where all media together exceed the limit. A file that is named several times counts each time, because it is sent each time. */
function checkTotal(
  call: Call,
  blocks: readonly Linked[],
  media: ReadonlyMap<Block, Media>,
  total: number,
): void {
  let length = 0;
  for (const block of blocks) {
    length += media.get(block)?.bytes.length ?? 0;
    if (length <= total) continue;
    const param = urlPath(call, block);
    throw new GatewayError(
      'invalid_value',
      `${param}: with this file, those of the request are too large together.`,
      { param },
    );
  }
}

function inlined(block: Linked, media: Media | undefined, texts: Map<Media, string>): Block {
  if (media === undefined) return block;
  const data = texts.get(media) ?? media.bytes.toString('base64');
  texts.set(media, data);
  const mimeType = shownType(media.mimeType, block.source.mimeType);
  return { ...block, type: typeOf(block, mimeType), source: { kind: 'data', data, mimeType } };
}

/** Returns the MIME type to send. For texts the client's type wins, because bytes do not show it. MP3 gets the type that every provider accepts. */
function shownType(mimeType: string, given: string | undefined): string {
  if (mimeType === 'text/plain' && given?.startsWith('text/') === true) return given;
  return mimeType === 'audio/mpeg' ? 'audio/mp3' : mimeType;
}

/** Returns the type of the block. A URL without a MIME type counts as a document until its bytes are known. */
function typeOf({ type, source }: Linked, mimeType: string): MediaBlock['type'] {
  const family = mimeType.slice(0, mimeType.indexOf('/'));
  const isMedium = family === 'image' || family === 'audio' || family === 'video';
  return type === 'file' && source.mimeType === undefined && isMedium ? family : type;
}

function contentWith(
  content: readonly Block[],
  wanted: (block: Block) => block is Linked,
  replace: (block: Linked) => Block | undefined,
): readonly Block[] {
  let changed = false;
  const replaced = content.flatMap((block): readonly Block[] => {
    if (block.type === 'tool-result') {
      const inner = contentWith(block.content, wanted, replace);
      if (inner === block.content) return [block];
      changed = true;
      return [{ ...block, content: inner }];
    }
    if (!wanted(block)) return [block];
    changed = true;
    const other = replace(block);
    return other === undefined ? [] : [other];
  });
  return changed ? replaced : content;
}

/** Returns the path of a URL in the client's request: the path of the block, and of the member in it that has the URL. */
function urlPath(call: Call, { at, source }: Linked): string {
  if (at === undefined) return 'messages';
  let piece: JsonValue | undefined = call.body;
  for (const [, name, index] of at.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    if (name !== undefined) piece = isObject(piece) ? piece[name] : undefined;
    else piece = Array.isArray(piece) ? (piece[Number(index)] as JsonValue | undefined) : undefined;
  }
  return `${at}${fieldOf(piece, source.url, 2) ?? ''}`;
}

/** Returns the path of the member with this text, such as `.image_url.url`, at most `depth` levels down. */
function fieldOf(value: JsonValue | undefined, text: string, depth: number): string | undefined {
  if (!isObject(value) || depth === 0) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (member === text) return `.${name}`;
    const inner = fieldOf(member, text, depth - 1);
    if (inner !== undefined) return `.${name}${inner}`;
  }
  return undefined;
}
