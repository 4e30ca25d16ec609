import { isUtf8 } from 'node:buffer';
import { callKey } from '../../sdk/call-key.ts';
import { type Call } from '../../sdk/call.ts';
import { GatewayError } from '../../sdk/errors.ts';
import type { MediaBlock } from '../../model/chat.ts';
import type { FetchSettings } from '../../settings/fetch.ts';
import type { GuardedFetch } from './fetch.ts';
import { mediaHead, mediaKind } from '../../model/media-kind.ts';

/** What a caller of {@link FetchMedia} wants. */
export interface MediaWish {
  /** What the file may be. `file` stands for documents: PDF, text, office files, and every medium. */
  readonly kinds: readonly MediaBlock['type'][];
  /** Where the client gave the URL, for errors: `messages[0].content[1].image_url.url`. */
  readonly at: string;
}

/** A file that was fetched for a call. */
export interface Media {
  readonly bytes: Buffer;
  /** What its bytes show, where they show anything; what its server says of a text. */
  readonly mimeType: string;
}

/**
 * Fetches a file from a URL that the client gave, through the guard and within `settings.fetch`; nothing twice for one call, until
 * {@link forgetMedia}. Rejects with GatewayError 400: what could not be fetched is `invalid_value`, what is no such file
 * `unsupported_content`.
 */
export type FetchMedia = (
  call: Pick<Call, 'onEnd' | 'get' | 'set'>,
  url: string,
  wish: MediaWish,
) => Promise<Media>;

/** What was fetched for a call so far. */
interface FetchedMedia {
  readonly files: Map<string, Promise<Media>>;
  readonly room: { left: number };
  readonly total: number;
  /** How many fetches were begun. */
  count: number;
}

const fetchedMedia = callKey<FetchedMedia>('fetched media');

/** Lets go of what was fetched for this call: for whoever knows that no other try will ask for it. */
export function forgetMedia(call: Pick<Call, 'get' | 'set'>): void {
  const state = call.get(fetchedMedia);
  if (state !== undefined)
    call.set(fetchedMedia, { ...state, files: new Map(), room: { left: state.total } });
}

/** Binds fetches of media to the guard. */
export function createFetchMedia(settings: FetchSettings, fetch: GuardedFetch): FetchMedia {
  const get = async (
    call: Parameters<FetchMedia>[0],
    url: string,
    { kinds, at }: MediaWish,
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

  return async function fetchMedia(call, url, wish) {
    const { at } = wish;
    if (!settings.enabled)
      throw new GatewayError(
        'unsupported_content',
        `${at}: a file by URL cannot be sent to the channel for this model.`,
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
    const key = `${wish.kinds.join()} ${url}`;
    for (let known = files.get(key); known !== undefined; known = files.get(key)) {
      try {
        return await known;
      } catch (error) {
        // Another try of the same call began the fetch and was given up: this one goes on.
        if (!wasGivenUp(error) || hasEnded(call)) throw error;
        if (files.get(key) === known) files.delete(key);
      }
    }
    if (state.count === settings.most)
      throw new GatewayError(
        'invalid_value',
        `${at}: no more than ${settings.most} files of a request are fetched from URLs.`,
        {
          param: at,
        },
      );
    state.count += 1;
    const media = get(call, url, wish, room);
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

/** A job for the end of a call that is over runs at once. */
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
  kinds: MediaWish['kinds'],
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

/** What servers say that know nothing of a file. */
const unspecific: ReadonlySet<string> = new Set([
  'application/octet-stream',
  'binary/octet-stream',
  'application/binary',
  'application/ogg',
  'application/mp4',
]);

/** Formats that hold sound as well as pictures. */
const containers = /^video\/(mp4|webm|ogg|3gpp|x-matroska)$/;

/** Header and bytes must say the same family; the bytes say which of it. */
function mediumType(
  kind: 'image' | 'audio' | 'video',
  shown: string | undefined,
  said: string | undefined,
): string | undefined {
  if (shown === undefined) return undefined;
  const family = said === undefined || unspecific.has(said) ? undefined : familyOf(said);
  if (kind === 'audio' && containers.test(shown)) {
    return family === undefined || family === 'audio' || family === 'video'
      ? `audio/${shown.slice('video/'.length)}`
      : undefined;
  }
  if (familyOf(shown) !== kind) return undefined;
  const agrees = family === undefined || family === kind || (kind === 'audio' && family === 'video');
  return agrees ? shown : undefined;
}

function documentType(head: Buffer, shown: string | undefined, said: string | undefined): string | undefined {
  const unsaid = said === undefined || unspecific.has(said);
  if (shown === undefined) {
    if (head.includes(0)) return undefined;
    if (unsaid) return 'text/plain';
    return isText(said) ? said : undefined;
  }
  if (shown === 'application/pdf') return unsaid || /^application\/(x-)?pdf$/.test(said) ? shown : undefined;
  // Office documents and books are archives: their servers tell which.
  if (shown === 'application/zip')
    return said !== undefined && /^application\/(vnd\.|epub\+zip$)/.test(said) ? said : undefined;
  return unsaid || familyOf(said) === familyOf(shown) ? shown : undefined;
}

function familyOf(type: string): string {
  return type.slice(0, type.indexOf('/'));
}

function isText(type: string): boolean {
  return type.startsWith('text/') || /^application\/([\w.-]+\+)?(json|xml|yaml)$/.test(type);
}
