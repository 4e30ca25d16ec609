import type { JsonObject } from '../../../model/json.ts';
import { officialType } from '../../_shared/data-url.ts';
import { sayAdded, sayDone, type ItemStatus, type OpenItem, type Place } from './frames.ts';
import { textOf } from '../extra.ts';

/** An image that the model made. */
export class ImageItem implements OpenItem {
  readonly type = 'image_generation_call';
  readonly #place: Place;
  readonly #mimeType: string | undefined;
  readonly #data: string[] = [];

  constructor(place: Place, mimeType: string | undefined) {
    this.#place = place;
    this.#mimeType = mimeType;
    const { id, added } = place;
    sayAdded(place, {
      ...(added ?? { type: 'image_generation_call', status: 'in_progress', result: null }),
      id,
    });
    if (added !== undefined) return;
    this.#say('in_progress');
    this.#say('generating');
  }

  get id(): string {
    return this.#place.id;
  }
  get index(): number {
    return this.#place.index;
  }

  data(piece: string): void {
    this.#data.push(piece);
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    const result = this.#data.length === 0 ? null : joined(this.#data);
    const { id, added } = this.#place;
    if (done !== undefined) return sayDone(this.#place, { ...done, id, result });
    if (added === undefined && status === 'completed') this.#say('completed');
    const format = /^image\/(png|jpeg|webp)$/.exec(officialType(this.#mimeType ?? ''))?.[1];
    return sayDone(this.#place, {
      ...added,
      type: 'image_generation_call',
      id,
      status: result === null ? 'failed' : status,
      result,
      ...(format === undefined ? {} : { output_format: format }),
    });
  }

  #say(what: string): void {
    const { writer, id, index } = this.#place;
    writer.say(`response.image_generation_call.${what}`, { item_id: id, output_index: index });
  }
}

/** Pieces of base64 as one: a piece that ends in padding cannot simply be followed by another. */
function joined(pieces: readonly string[]): string {
  if (!pieces.slice(0, -1).some((piece) => piece.endsWith('='))) return pieces.join('');
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))).toString('base64');
}

/** An item that only this format knows: its events go as they came, under this reply's numbers. */
export class OpaqueItem implements OpenItem {
  readonly type: string;
  readonly #place: Place;
  readonly #item: JsonObject;

  /** `frame` holds the item as it was added. */
  constructor(place: Place, item: JsonObject, frame: JsonObject) {
    this.#place = place;
    this.#item = { ...item, id: place.id };
    this.type = textOf(item.type);
    place.writer.say('response.output_item.added', {
      ...frame,
      output_index: place.index,
      item: this.#item,
    });
  }

  get id(): string {
    return this.#place.id;
  }
  get index(): number {
    return this.#place.index;
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    const given = done ?? this.#item;
    const item = done === undefined && textOf(given.status) === 'in_progress' ? { ...given, status } : given;
    return sayDone(this.#place, { ...item, id: this.id });
  }
}
