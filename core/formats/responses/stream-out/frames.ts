/** Numbers and gathers the events of a Responses stream. */
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import type { WireFrame } from '../../../sdk/format.ts';

const none: readonly WireFrame[] = [];

/** Numbers the frames of one stream and gathers them until they are taken. */
export class FrameWriter {
  #sequence = 0;
  #out: WireFrame[] = [];

  emit(type: string, fields: JsonObject): void {
    // The type comes first: readers that do not parse tell an error by how a frame begins.
    const json: MutableObject = { type, sequence_number: 0, ...fields };
    json.type = type;
    json.sequence_number = this.#sequence;
    this.#sequence += 1;
    this.#out.push({ event: type, json });
  }

  /** Writes the last frame of every stream in the Open Responses specification. The official clients accept it, because chat completions have it too. */
  end(): void {
    this.#out.push({ text: '[DONE]' });
  }

  /** Continues the sequence numbers of earlier frames. */
  goOnAfter(frames: Buffer): void {
    const numbers = frames.toString('latin1').match(/"sequence_number": ?\d+/g);
    const last = Number(/\d+/.exec(numbers?.at(-1) ?? '')?.[0] ?? Number.NaN);
    if (Number.isSafeInteger(last)) this.#sequence = last + 1;
  }

  take(): readonly WireFrame[] {
    if (this.#out.length === 0) return none;
    const frames = this.#out;
    this.#out = [];
    return frames;
  }
}

/** Status of an ended item. */
export type ItemStatus = 'completed' | 'incomplete';

/** First members of an output item: its id and `output_index`, and the item as its provider added it if the provider used this format. */
export interface ItemStart {
  readonly writer: FrameWriter;
  readonly id: string;
  readonly index: number;
  readonly added?: JsonObject | undefined;
}

/** An item of the output that has been added and not yet finished. */
export abstract class OpenItem {
  readonly type: string;
  readonly id: string;
  readonly index: number;
  /** The item as its provider added it. */
  protected readonly added: JsonObject | undefined;
  protected readonly writer: FrameWriter;

  constructor(type: string, { writer, id, index, added }: ItemStart) {
    this.type = type;
    this.id = id;
    this.index = index;
    this.added = added;
    this.writer = writer;
  }

  /** Writes the remaining frames and returns the item for the output. `done`: the item as its provider finished it. */
  abstract close(status: ItemStatus, done: JsonObject | undefined): JsonObject;

  /** Says an event of the item. */
  protected emit(type: string, fields?: JsonObject): void {
    this.writer.emit(type, { item_id: this.id, output_index: this.index, ...fields });
  }

  /** Says that the item was added. */
  protected emitAdded(item: JsonObject, frame?: JsonObject): void {
    this.writer.emit('response.output_item.added', { ...frame, output_index: this.index, item });
  }

  /** Says that the item is finished, and gives it back. */
  protected emitDone(item: JsonObject): JsonObject {
    this.writer.emit('response.output_item.done', { output_index: this.index, item });
    return item;
  }
}

const ordinary =
  /^response\.(?:content_part|output_text|refusal|reasoning|function_call_arguments|custom_tool_call_input|output_item)/;

/** Returns true for events of ordinary items, which the encoder writes itself. */
export function isOrdinary(type: string): boolean {
  return ordinary.test(type);
}
