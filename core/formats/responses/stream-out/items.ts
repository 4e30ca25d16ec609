/** Writes the output items of a Responses stream. */
import type { Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import type { EventOf, EncodedEvent } from '../../_shared/floor.ts';
import { numberedId } from '../../_shared/tool-ids.ts';
import type { ReplyContext } from '../../../sdk/format.ts';
import { writeAnnotation } from '../citations.ts';
import { ActionItem, CallItem } from './calls.ts';
import { isOrdinary, type FrameWriter, type ItemStatus, type OpenItem, type ItemStart } from './frames.ts';
import { ImageItem, imageType, OpaqueItem } from './others.ts';
import { MessageItem, ReasoningItem } from './parts.ts';
import { callId, itemId } from '../ids.ts';
import { isText, textOf } from '../../_shared/fields.ts';
import { actionField, spellingOf } from '../tools/calls.ts';
import { toolSpellings, type ToolSpelling } from '../tools/spelling.ts';
import { addedItem, kept, own } from '../wire.ts';

type Start = EventOf<'text-start' | 'refusal-start' | 'reasoning-start' | 'media-start'>;

/**
 * Encodes the output of one response, one block at a time. An item stays open after its block has ended, until other content arrives,
 * because only then it is certain that no further part belongs to it, and whether the response was cut in it.
 */
export class OutputWriter {
  readonly items: JsonObject[] = [];
  /** The current block. */
  floor: number | undefined;
  /** The model declined in words. */
  refused = false;
  readonly #writer: FrameWriter;
  readonly #response: string;
  readonly #drop: (path: string) => void;
  readonly #context: ReplyContext;
  /** Ids of calls that were given out, and how often each was wanted. */
  readonly #callIds = new Map<string, number>();
  readonly #itemIds = new Set<string>();
  /** Read from the request with the first call. */
  #spellings: ReadonlyMap<string, ToolSpelling> | undefined;
  #item: OpenItem | undefined;
  /** Start of the current block, until its first content. */
  #start: Start | undefined;

  constructor(writer: FrameWriter, response: string, context: ReplyContext, drop: (path: string) => void) {
    this.#writer = writer;
    this.#response = response;
    this.#drop = drop;
    this.#context = context;
  }

  /** Says an event of the block that has the floor, or that takes it. */
  event(block: number, event: EncodedEvent): void {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
      case 'reasoning-start':
      case 'media-start':
        return this.#begin(block, event);
      case 'text-delta':
      case 'refusal-delta':
        return this.#text(block, event);
      case 'citation':
        return this.#cite(block, event);
      case 'text-end':
      case 'refusal-end':
        return this.#endText(event);
      case 'reasoning-delta':
        return this.#think(block, event);
      case 'reasoning-end':
        return this.#endReasoning(block, event);
      case 'tool-start':
        return this.#beginCall(block, event);
      case 'tool-delta':
        return this.#input(block, event);
      case 'tool-end':
        return this.#endCall(event);
      case 'media-delta':
        return this.#media(block, event);
      case 'media-end':
        return this.#endMedia(event);
      case 'opaque':
        return this.#opaque(block, event.value);
    }
  }

  /** Ends a block that has not ended, so that the next block can start. */
  endFloor(): void {
    this.floor = undefined;
    this.#start = undefined;
    const item = this.#item;
    if (item instanceof MessageItem || item instanceof ReasoningItem) item.endPart();
  }

  /** Finishes the item that is still open, if there is one. */
  settle(status: ItemStatus): void {
    if (this.floor === undefined) this.#close(status);
  }

  /** Emits an empty message, for a response without text. */
  emitEmptyMessage(status: ItemStatus): void {
    this.#open('message', undefined, (begun) => new MessageItem(begun)).begin('output_text');
    this.#close(status);
  }

  /** Closes the item. `done`: the item as its provider finished it. */
  #close(status: ItemStatus, done?: JsonObject): void {
    const item = this.#item;
    if (item === undefined) return;
    this.#item = undefined;
    this.items.push(item.close(status, done));
  }

  /** Finishes what was before and opens the next item. `added` is the item as its provider added it. */
  #open<Item extends OpenItem>(
    type: string,
    added: JsonObject | undefined,
    make: (begun: ItemStart) => Item,
  ): Item {
    this.#close('completed');
    const index = this.items.length;
    const wanted = textOf(added?.id);
    const id = wanted === '' || this.#itemIds.has(wanted) ? itemId(type, this.#response, index) : wanted;
    this.#itemIds.add(id);
    const item = make({ writer: this.#writer, id, index, added });
    this.#item = item;
    return item;
  }

  /** Makes the block the current one. Opens its item if the provider sent its start. */
  #begin(block: number, event: Start): void {
    if (this.floor !== undefined) return;
    this.floor = block;
    this.#start = event;
    const added = kept(event.extra, '$item')?.type;
    if (event.type === 'media-start') {
      if (event.media !== 'image') this.#drop('media');
      else if (added === imageType) this.#image(event);
    } else if (event.type === 'reasoning-start') {
      if (added === 'reasoning') this.#need('reasoning', ReasoningItem);
    } else if (kept(event.extra, '$part') !== undefined)
      this.#part(event.type === 'refusal-start' ? 'refusal' : 'output_text');
    else if (added === 'message') this.#need('message', MessageItem);
  }

  /**
   * Returns the open item of this kind. A block opens one with its first word, so that none stays empty; `joins`: unless its provider added one, it
   * goes on in the item before it.
   */
  #need<Item extends OpenItem>(type: string, Kind: new (begun: ItemStart) => Item, joins = false): Item {
    const start = this.#start;
    this.#start = undefined;
    const added = addedItem(start?.extra, type);
    const current = this.#item;
    if (current instanceof Kind && (start === undefined || (joins && added === undefined))) return current;
    return this.#open(type, added, (begun) => new Kind(begun));
  }

  /** Returns the message with its open part. */
  #part(kind: 'output_text' | 'refusal'): MessageItem {
    const start = this.#start;
    const message = this.#need('message', MessageItem, true);
    if (start !== undefined || !message.speaks) message.begin(kind, kept(start?.extra, '$part'));
    return message;
  }

  #text(block: number, event: EventOf<'text-delta' | 'refusal-delta'>): void {
    this.floor ??= block;
    const declines = event.type === 'refusal-delta';
    if (declines) this.refused = true;
    const logprobs = declines ? undefined : event.logprobs;
    const frame = kept(event.extra, '$frame');
    if (event.text === '' && logprobs === undefined && frame === undefined) return;
    this.#part(declines ? 'refusal' : 'output_text').delta(event.text, logprobs, frame);
  }

  #cite(block: number, { citation }: EventOf<'citation'>): void {
    this.floor ??= block;
    const isAnnotated = this.#part('output_text').annotate((length) => writeAnnotation(citation, length));
    if (!isAnnotated) this.#drop('citation');
    else if (citation.quote !== undefined) this.#drop('citation.quote');
  }

  #endText(event: EventOf<'text-end' | 'refusal-end'>): void {
    if (this.#item instanceof MessageItem) this.#item.endPart(kept(event.extra, '$partDone'));
    this.#leave(kept(event.extra, '$done'));
    if (event.type === 'text-end' && event.proof !== undefined) this.#carry(event.proof, 'text');
  }

  /** Ends the block. Finishes its item if the provider sent its end. */
  #leave(done: JsonObject | undefined): void {
    this.floor = undefined;
    this.#start = undefined;
    if (done !== undefined && done.type === this.#item?.type) this.#close('completed', done);
  }

  #think(block: number, { text, extra }: EventOf<'reasoning-delta'>): void {
    if (this.floor === undefined) this.#begin(block, { type: 'reasoning-start', block, choice: 0 });
    if (own(extra).$separator === true) return;
    const part = kept(extra, '$part');
    const frame = kept(extra, '$frame');
    if (part !== undefined)
      this.#need('reasoning', ReasoningItem).begin(
        part.place === 'content' ? 'content' : 'summary',
        isObject(part.as) ? part.as : undefined,
      );
    if (text === '' && frame === undefined) return;
    const item = this.#need('reasoning', ReasoningItem);
    // A summary is what this API shows of reasoning, and what all its clients read.
    if (!item.speaks) item.begin('summary');
    item.delta(text, undefined, frame);
  }

  #endReasoning(block: number, event: EventOf<'reasoning-end'>): void {
    if (this.floor === undefined) this.#begin(block, { type: 'reasoning-start', block, choice: 0 });
    if (event.proof !== undefined) this.#need('reasoning', ReasoningItem).prove(event.proof);
    if (this.#item instanceof ReasoningItem) this.#item.endPart();
    this.#leave(kept(event.extra, '$done'));
  }

  /** Writes a proof of a text or call, which have no field for it, as a reasoning item, so that the client sends it back. */
  #carry(proof: Proof, on: 'text' | 'tool-call'): void {
    this.#open('reasoning', undefined, (begun) => new ReasoningItem(begun)).prove(proof, on);
    this.#close('completed');
  }

  #beginCall(block: number, event: EventOf<'tool-start'>): void {
    if (this.floor !== undefined) return;
    if (event.proof !== undefined) this.#carry(event.proof, 'tool-call');
    this.floor = block;
    const custom = event.custom === true;
    this.#spellings ??= toolSpellings(this.#context.expanded ?? this.#context.body);
    const spelling = spellingOf({ name: event.name, custom }, kept(event.extra, '$item'), this.#spellings);
    const Kind = actionField(spelling.call) === undefined ? CallItem : ActionItem;
    this.#open(spelling.call, addedItem(event.extra, spelling.call), (begun) => {
      // Results are matched by the ids of their calls, so none may come twice.
      const wanted = event.id === '' ? callId(this.#response, begun.index) : event.id;
      return new Kind(begun, { callId: numberedId(wanted, this.#callIds), spelling, custom });
    });
  }

  /** The current tool call. */
  get #call(): CallItem | ActionItem | undefined {
    const item = this.#item;
    return item instanceof CallItem || item instanceof ActionItem ? item : undefined;
  }

  #input(block: number, { input, extra }: EventOf<'tool-delta'>): void {
    const frame = kept(extra, '$frame');
    if (this.floor === block && (input !== '' || frame !== undefined)) this.#call?.delta(input, frame);
  }

  #endCall(event: EventOf<'tool-end'>): void {
    if (this.floor === undefined) return;
    this.#call?.end(own(event.extra).$empty === true);
    this.#leave(kept(event.extra, '$done'));
  }

  #image({ mimeType }: EventOf<'media-start'>): ImageItem {
    const image = this.#need(imageType, ImageItem);
    image.mimeType = mimeType;
    return image;
  }

  #media(block: number, { data, transcript }: EventOf<'media-delta'>): void {
    if (this.floor !== block) return;
    const start = this.#start;
    if (isText(data)) {
      if (start?.type === 'media-start' && start.media === 'image') this.#image(start).data(data);
      else if (start === undefined && this.#item instanceof ImageItem) this.#item.data(data);
    }
    if (transcript !== undefined) this.#drop('media');
  }

  #endMedia({ url, extra }: EventOf<'media-end'>): void {
    if (this.floor === undefined) return;
    if (url !== undefined) this.#drop('media.url');
    this.#leave(kept(extra, '$done'));
  }

  #opaque(block: number, value: JsonObject): void {
    const type = textOf(value.type);
    const { item, ...frame } = value;
    if (this.floor !== block) {
      if (!isObject(item)) return this.#drop(`opaque.${type}`);
      this.floor = block;
      this.#open(textOf(item.type), item, (begun) => new OpaqueItem(begun, item, frame));
    }
    const current = this.#item;
    if (type === 'response.output_item.done') {
      if (current instanceof OpaqueItem && isObject(item)) this.#leave(item);
    } else if (type !== 'response.output_item.added' && current !== undefined) {
      if (!(current instanceof OpaqueItem) && isOrdinary(type)) return;
      const id = value.item_id === undefined ? {} : { item_id: current.id };
      this.#writer.emit(type, { ...value, output_index: current.index, ...id });
    }
  }
}
