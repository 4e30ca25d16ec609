import type { GatewayEvent } from '../../../model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given } from '../../_shared/check.ts';
import { parseDataUrl } from '../../_shared/data-url.ts';
import { isText, objectsOf } from '../../_shared/fields.ts';
import { withExtra } from '../wire.ts';

/** Reads the sound and the images of one answer. `leave` ends the words that are open. */
export class MediaDecoder {
  readonly #choice: number;
  readonly #nextBlock: () => number;
  readonly #leave: (events: GatewayEvent[]) => void;
  /** The sound that is open, and what of its base64 makes no whole group yet. */
  #sound: { readonly block: number; rest: string } | undefined;

  constructor(choice: number, nextBlock: () => number, leave: (events: GatewayEvent[]) => void) {
    this.#choice = choice;
    this.#nextBlock = nextBlock;
    this.#leave = leave;
  }

  /** Reads a piece of the sound. */
  audio(audio: JsonObject, events: GatewayEvent[]): void {
    const { data, transcript, expires_at: expires, ...rest } = audio;
    const choice = this.#choice;
    const own = withExtra(isEmpty(rest) ? {} : { $audio: rest });
    if (this.#sound === undefined) {
      this.#leave(events);
      this.#sound = { block: this.#nextBlock(), rest: '' };
      events.push({ type: 'media-start', block: this.#sound.block, choice, media: 'audio', ...own });
    } else if (!isEmpty(rest) && !isText(data) && !isText(transcript)) {
      events.push({ type: 'media-delta', block: this.#sound.block, choice, ...own });
    }
    const { block } = this.#sound;
    const piece = isText(data) ? this.#wholeQuads(data) : '';
    if (piece !== '' || isText(transcript)) {
      const media = {
        ...(piece === '' ? {} : { data: piece }),
        ...(isText(transcript) ? { transcript } : {}),
      };
      events.push({ type: 'media-delta', block, choice, ...media });
    }
    if (given(expires)) this.close(events, { $audio: { expires_at: expires } });
  }

  images(list: JsonValue, events: GatewayEvent[]): void {
    for (const { image_url: holder, type: _, ...rest } of objectsOf(list)) {
      const { url, ...others } = isObject(holder) ? holder : {};
      if (!isText(url)) continue;
      this.#leave(events);
      const base = { block: this.#nextBlock(), choice: this.#choice };
      const parsed = parseDataUrl(url);
      const type = parsed === undefined ? {} : { mimeType: parsed.mimeType };
      events.push({ type: 'media-start', ...base, media: 'image', ...type });
      if (parsed !== undefined) events.push({ type: 'media-delta', ...base, data: parsed.data });
      const own = withExtra({
        ...(isEmpty(rest) ? {} : { image: rest }),
        ...(isEmpty(others) ? {} : { imageUrl: others }),
      });
      events.push({ type: 'media-end', ...base, ...(parsed === undefined ? { url } : {}), ...own });
    }
  }

  /** Ends the sound, if there is one. */
  close(events: GatewayEvent[], own: JsonObject = {}): void {
    if (this.#sound === undefined) return;
    const { block, rest } = this.#sound;
    const base = { block, choice: this.#choice };
    if (rest !== '') events.push({ type: 'media-delta', ...base, data: rest.padEnd(4, '=') });
    this.#sound = undefined;
    events.push({ type: 'media-end', ...base, ...withExtra(own) });
  }

  /** Returns whole groups of four characters, because base64 may be cut anywhere. */
  #wholeQuads(data: string): string {
    if (this.#sound === undefined) return '';
    const all = this.#sound.rest + data;
    const cut = all.length - (all.length % 4);
    this.#sound.rest = all.slice(cut);
    return all.slice(0, cut);
  }
}

function isEmpty(object: JsonObject): boolean {
  for (const _ in object) return false;
  return true;
}
