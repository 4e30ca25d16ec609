/** Writes images and sound of a reply. */
import { joinBase64 } from '../../_shared/base64.ts';
import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import { toDataUrl } from '../../_shared/data-url.ts';
import type { EventOf } from '../../_shared/floor.ts';
import { own } from '../wire.ts';

interface Media {
  readonly media: 'image' | 'audio' | 'video' | 'file';
  readonly mimeType: string | undefined;
  readonly pieces: string[];
  id: string | undefined;
}

/** State that the encoders of a response share. */
interface MediaScope {
  readonly created: number;
  drop(name: string): void;
}

/** Writes the sound and the images of one answer, each event as a delta if it is one; other media have no place in it. */
export class MediaEncoder {
  readonly #scope: MediaScope;
  readonly #open = new Map<number, Media>();

  constructor(scope: MediaScope) {
    this.#scope = scope;
  }

  begin(event: EventOf<'media-start'>): JsonObject | undefined {
    if (this.#open.has(event.block)) return undefined;
    const { media, mimeType } = event;
    if (media !== 'audio' && media !== 'image') this.#scope.drop(`media.${media}`);
    const given = audioOf(event);
    const id = typeof given?.id === 'string' ? given.id : undefined;
    this.#open.set(event.block, { media, mimeType, pieces: [], id });
    return given === undefined || media !== 'audio' ? undefined : { audio: given };
  }

  add(event: EventOf<'media-delta'>): JsonObject | undefined {
    const state = this.#open.get(event.block);
    if (state === undefined) return undefined;
    if (state.media === 'image') {
      if (event.data !== undefined) state.pieces.push(event.data);
      return undefined;
    }
    if (state.media !== 'audio') return undefined;
    const audio: MutableObject = { ...audioOf(event) };
    if (state.id === undefined && audio.id === undefined) {
      state.id = `audio_${randomUUID().replaceAll('-', '')}`;
      audio.id = state.id;
    }
    if (event.data !== undefined) audio.data = event.data;
    if (event.transcript !== undefined) audio.transcript = event.transcript;
    return { audio };
  }

  end(event: EventOf<'media-end'>): JsonObject | undefined {
    const state = this.#open.get(event.block);
    if (state === undefined) return undefined;
    this.#open.delete(event.block);
    if (state.media === 'image') return imageDelta(state, event);
    const given = audioOf(event);
    if (given !== undefined) return { audio: given };
    // This gateway keeps no sound: the id that clients may send back has ended when it is made.
    return state.media === 'audio' && state.id?.startsWith('audio_') === true && event.extra === undefined
      ? { audio: { expires_at: this.#scope.created } }
      : undefined;
  }
}

/** Returns the members of the audio that a provider of this format sent. */
function audioOf({ extra }: EventOf<'media-start' | 'media-delta' | 'media-end'>): JsonObject | undefined {
  const { $audio } = own(extra);
  return isObject($audio) ? $audio : undefined;
}

function imageDelta({ pieces, mimeType }: Media, event: EventOf<'media-end'>): JsonObject | undefined {
  const data = pieces.length === 0 ? undefined : toDataUrl(mimeType ?? 'image/png', joinBase64(pieces));
  const url = event.url ?? data;
  if (url === undefined) return undefined;
  const { image, imageUrl } = own(event.extra);
  const image_url = { ...(isObject(imageUrl) ? imageUrl : {}), url };
  return { images: [{ type: 'image_url', ...(isObject(image) ? image : {}), image_url }] };
}
