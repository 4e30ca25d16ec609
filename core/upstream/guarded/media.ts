/** Fetches media and documents by URL for a call, once per URL, and checks their type by their bytes and their `content-type`. */
import { isUtf8 } from 'node:buffer';
import { callKey } from '../../sdk/call-key.ts';
import { type Call } from '../../sdk/call.ts';
import { GatewayError } from '../../sdk/errors.ts';
import type { MediaBlock } from '../../model/chat.ts';
import type { FetchSettings } from '../../settings/fetch.ts';
import type { GuardedFetch } from './fetch.ts';
import { mediaHead, mediaKind } from '../../model/media-kind.ts';

/** Options of {@link FetchMedia}. */
export interface MediaRequirements {
  /** Accepted kinds of files. `file` means documents: PDF, text, office files, and all media. */
  readonly kinds: readonly MediaBlock['type'][];
  /** Path of the URL in the client's body, for errors: `messages[0].content[1].image_url.url`. */
  readonly at: string;
}

/** A file that was fetched for a call. */
export interface Media {
  readonly bytes: Buffer;
  /** Media type by the file's bytes, where they have a signature; else that of its server, for a text. */
  readonly mimeType: string;
}

/**
 * Fetches a file from a URL of the client, through the guard and within `settings.fetch`, once for a call until {@link forgetMedia}. Rejects
 * with GatewayError 400: `invalid_value` for a failed fetch, `unsupported_content` for a file of another kind.
 */
export type FetchMedia = (
  call: Pick<Call, 'onEnd' | 'get' | 'set'>,
  url: string,
  requirements: MediaRequirements,
) => Promise<Media>;

/** Fetched files of a call. */
interface FetchedMedia {
  readonly files: Map<string, Promise<Media>>;
  readonly room: { left: number };
  readonly total: number;
  /** Number of fetches that were begun. */
  count: number;
}

const fetchedMedia = callKey<FetchedMedia>('fetched media');

/** Releases the fetched files of a call, when no other attempt will need them. */
export function forgetMedia(call: Pick<Call, 'get' | 'set'>): void {
  const state = call.get(fetchedMedia);
  if (state !== undefined)
    call.set(fetchedMedia, { ...state, files: new Map(), room: { left: state.total } });
}

/** Returns the fetch function for media. */
export function createFetchMedia(settings: FetchSettings, fetch: GuardedFetch): FetchMedia {
  const get = async (
    call: Parameters<FetchMedia>[0],
    url: string,
    { kinds, at }: MediaRequirements,
    room: FetchedMedia['room'],
  ): Promise<Media> => {
    const wrong = (): GatewayError =>
      new GatewayError(
        'unsupported_content',
        `${at}: the file at this URL is not ${kinds.map((kind) => names[kind]).join(' or ')}.`,
        {
          param: at,
        },
      );
    const { bytes, contentType } = await fetch(call, url, {
      at,
      room,
      accept(head, type) {
        if (typeIn(kinds, head, type) === undefined) throw wrong();
      },
    });
    const mimeType = typeIn(kinds, bytes.subarray(0, mediaHead), contentType);
    if (mimeType === undefined || (isText(mimeType) && !isUtf8(bytes))) throw wrong();
    return { bytes, mimeType };
  };

  return async function fetchMedia(call, url, requirements) {
    const { at } = requirements;
    if (!settings.enabled)
      throw new GatewayError(
        'unsupported_content',
        `${at}: the channel for this model does not accept files by URL. Send the data instead.`,
        {
          param: at,
        },
      );
    let state = call.get(fetchedMedia);
    if (state === undefined) {
      const { total } = settings;
      state = { files: new Map(), room: { left: total }, total, count: 0 };
      call.set(fetchedMedia, state);
    }
    const { files, room } = state;
    const key = `${requirements.kinds.join()} ${url}`;
    for (let known = files.get(key); known !== undefined; known = files.get(key)) {
      try {
        return await known;
      } catch (error) {
        // Another attempt of the same call began the fetch and was abandoned: fetches again for this attempt.
        if (!wasGivenUp(error) || hasEnded(call)) throw error;
        if (files.get(key) === known) files.delete(key);
      }
    }
    if (state.count === settings.most)
      throw new GatewayError(
        'invalid_value',
        `${at}: a request can have at most ${settings.most} files by URL.`,
        {
          param: at,
        },
      );
    state.count += 1;
    const media = get(call, url, requirements, room);
    files.set(key, media);
    try {
      return await media;
    } catch (error) {
      if (files.get(key) === media) files.delete(key);
      throw error;
    }
  };
}

function wasGivenUp(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'client_closed_request';
}

/** Returns true for a call that has ended, for which `onEnd` runs its callback at once. */
function hasEnded(call: Pick<Call, 'onEnd'>): boolean {
  let over = false;
  const forget = call.onEnd(() => (over = true));
  forget();
  return over;
}

const names: Readonly<Record<MediaBlock['type'], string>> = {
  image: 'an image',
  audio: 'a sound',
  video: 'a video',
  file: 'a document',
};

function typeIn(
  kinds: MediaRequirements['kinds'],
  head: Buffer,
  contentType: string | undefined,
): string | undefined {
  const shown = mediaKind(head);
  for (const kind of kinds) {
    const type =
      kind === 'file' ? documentType(head, shown, contentType) : mediumType(kind, shown, contentType);
    if (type !== undefined) return type;
  }
  return undefined;
}

/** Content types of servers that do not know the type of a file. */
const unspecific: ReadonlySet<string> = new Set([
  'application/octet-stream',
  'binary/octet-stream',
  'application/binary',
  'application/ogg',
  'application/mp4',
]);

/** Container formats for both audio and video. */
const containers = /^video\/(mp4|webm|ogg|3gpp|x-matroska)$/;

/** Returns the type by the bytes, where its family (image, audio, video) agrees with `content-type`. */
function mediumType(
  kind: 'image' | 'audio' | 'video',
  shown: string | undefined,
  declared: string | undefined,
): string | undefined {
  if (shown === undefined) return undefined;
  const family = declared === undefined || unspecific.has(declared) ? undefined : familyOf(declared);
  if (kind === 'audio' && containers.test(shown)) {
    return family === undefined || family === 'audio' || family === 'video'
      ? `audio/${shown.slice('video/'.length)}`
      : undefined;
  }
  if (familyOf(shown) !== kind) return undefined;
  const agrees = family === undefined || family === kind || (kind === 'audio' && family === 'video');
  return agrees ? shown : undefined;
}

function documentType(
  head: Buffer,
  shown: string | undefined,
  declared: string | undefined,
): string | undefined {
  const isUnspecific = declared === undefined || unspecific.has(declared);
  if (shown === undefined) {
    if (head.includes(0)) return undefined;
    if (isUnspecific) return 'text/plain';
    return isText(declared) ? declared : undefined;
  }
  if (shown === 'application/pdf')
    return isUnspecific || /^application\/(x-)?pdf$/.test(declared) ? shown : undefined;
  // Office documents and EPUB books are zip archives: their type is that of the server.
  if (shown === 'application/zip')
    return declared !== undefined && /^application\/(vnd\.|epub\+zip$)/.test(declared) ? declared : undefined;
  return isUnspecific || familyOf(declared) === familyOf(shown) ? shown : undefined;
}

function familyOf(type: string): string {
  return type.slice(0, type.indexOf('/'));
}

function isText(type: string): boolean {
  return type.startsWith('text/') || /^application\/([\w.-]+\+)?(json|xml|yaml)$/.test(type);
}
