/** Encodes generated images, and items that only Responses knows, as output items of a Responses stream. */
import { joinBase64 } from '../../_shared/base64.ts';
import type { JsonObject } from '../../../model/json.ts';
import { officialType } from '../../_shared/data-url.ts';
import { OpenItem, type ItemStatus, type ItemStart } from './frames.ts';
import { textOf } from '../../_shared/fields.ts';

/** Type of items that are images. */
export const imageType = 'image_generation_call';

/** Encodes an image that the model generated. */
export class ImageItem extends OpenItem {
  mimeType: string | undefined;
  readonly #data: string[] = [];

  constructor(start: ItemStart) {
    super(imageType, start);
    const { id, added } = start;
    this.emitAdded({ ...(added ?? { type: imageType, status: 'in_progress', result: null }), id });
    if (added !== undefined) return;
    this.emit(`response.${imageType}.in_progress`);
    this.emit(`response.${imageType}.generating`);
  }

  data(piece: string): void {
    this.#data.push(piece);
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    const result = this.#data.length === 0 ? null : joinBase64(this.#data);
    const { id, added } = this;
    if (done !== undefined) return this.emitDone({ ...done, id, result });
    if (added === undefined && status === 'completed') this.emit(`response.${imageType}.completed`);
    const format = /^image\/(png|jpeg|webp)$/.exec(officialType(this.mimeType ?? ''))?.[1];
    return this.emitDone({
      ...added,
      type: imageType,
      id,
      status: result === null ? 'failed' : status,
      result,
      ...(format === undefined ? {} : { output_format: format }),
    });
  }
}

/** Encodes an item that only this format knows: its events are sent as they came, with the numbers of this reply. */
export class OpaqueItem extends OpenItem {
  readonly #item: JsonObject;

  /** `frame` holds the item as it was added. */
  constructor(start: ItemStart, item: JsonObject, frame: JsonObject) {
    super(textOf(item.type), start);
    this.#item = { ...item, id: start.id };
    this.emitAdded(this.#item, frame);
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    const given = done ?? this.#item;
    const item = done === undefined && textOf(given.status) === 'in_progress' ? { ...given, status } : given;
    return this.emitDone({ ...item, id: this.id });
  }
}
