import type { Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { given } from '../../_shared/check.ts';
import type { EventOf, Said } from '../../_shared/floor.ts';
import { numbered } from '../../_shared/tool-ids.ts';
import type { ReplyContext } from '../../../sdk/format.ts';
import { writeAnnotation } from '../citations.ts';
import { ActionItem, CallItem } from './calls.ts';
import { isOrdinary, type FrameWriter, type ItemStatus, type OpenItem, type ItemStart } from './frames.ts';
import { MessageItem } from './message.ts';
import { ImageItem, imageType, OpaqueItem } from './others.ts';
import { ReasoningItem, type ReasoningPlace } from './reasoning.ts';
import { callId, itemId } from '../ids.ts';
import { textOf } from '../../_shared/fields.ts';
import { actionField, spellingOf } from '../tools/calls.ts';
import { toolSpellings, type ToolSpelling } from '../tools/spelling.ts';
import { own, addedItem, frameOf } from '../wire.ts';

/**
 * The output of one response. One block has the floor at a time. An item stays open after its block has ended, until something else is
 * said: only then is it known that no further part belongs to it, and whether the answer was cut in it.
 */
export class OutputWriter {
  readonly items: JsonObject[] = [];
  /** The block that is being said. */
  floor: number | undefined;
  /** The model declined in words. */
  refused = false;
  readonly #writer: FrameWriter;
  readonly #response: string;
  readonly #lose: (path: string) => void;
  readonly #context: ReplyContext;
  readonly #shown: ReasoningPlace;
  /** Ids of calls that were given out, and how often each was wanted. */
  readonly #callIds = new Map<string, number>();
  readonly #itemIds = new Set<string>();
  /** Read from the request with the first call. */
  #spellings: ReadonlyMap<string, ToolSpelling> | undefined;
  #item: OpenItem | undefined;
  /** What the block on the floor began with, until its first word. */
  #start: EventOf<'text-start' | 'refusal-start' | 'reasoning-start' | 'media-start'> | undefined;

  constructor(writer: FrameWriter, response: string, context: ReplyContext, lose: (path: string) => void) {
    this.#writer = writer;
    this.#response = response;
    this.#lose = lose;
    this.#context = context;
    this.#shown = asksSummary(context.body) ? 'summary' : 'content';
  }

  /** Says an event of the block that has the floor, or that takes it. */
  event(block: number, event: Said): void {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
        return this.#beginText(block, event);
      case 'text-delta':
        return this.#text(block, event, 'output_text');
      case 'refusal-delta':
        this.refused = true;
        return this.#text(block, event, 'refusal');
      case 'citation':
        return this.#cite(block, event);
      case 'text-end':
      case 'refusal-end':
        return this.#endText(event);
      case 'reasoning-start':
        return this.#beginReasoning(block, event);
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
      case 'media-start':
        return this.#beginMedia(block, event);
      case 'media-delta':
        return this.#media(block, event);
      case 'media-end':
        return this.#endMedia(event);
      case 'opaque':
        return this.#opaque(block, event.value);
    }
  }

  /** Takes the floor back from a block that did not end by itself. */
  endFloor(): void {
    this.floor = undefined;
    this.#start = undefined;
    const item = this.#item;
    if (item instanceof MessageItem || item instanceof ReasoningItem) item.endPart();
  }

  /** Finishes the item that is still open, if there is one. `done` is the item as its provider finished it. */
  settle(status: ItemStatus, done?: JsonObject): void {
    if (this.floor !== undefined) return;
    this.#close(status, done);
  }

  /** An empty message, for an answer without a word. */
  sayNothing(status: ItemStatus): void {
    const message = new MessageItem(this.#startOf('message', undefined));
    message.begin('output_text');
    this.#item = message;
    this.#close(status);
  }

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
    const item = make(this.#startOf(type, added));
    this.#item = item;
    return item;
  }

  #startOf(type: string, added: JsonObject | undefined): ItemStart {
    const index = this.items.length;
    const wanted = textOf(added?.id);
    const id = wanted === '' || this.#itemIds.has(wanted) ? itemId(type, this.#response, index) : wanted;
    this.#itemIds.add(id);
    return { writer: this.#writer, id, index, added };
  }

  #beginText(block: number, event: EventOf<'text-start' | 'refusal-start'>): void {
    if (this.floor !== undefined) return;
    this.floor = block;
    this.#start = event;
    const { $part } = own(event.extra);
    const added = addedItem(event.extra, 'message');
    if (added !== undefined && !isObject($part))
      this.#open('message', added, (begun) => new MessageItem(begun));
    else if (isObject($part)) this.#part(event.type === 'refusal-start' ? 'refusal' : 'output_text');
  }

  /** The message with its open part: opened with the first word, so that none stays empty. */
  #part(kind: 'output_text' | 'refusal'): MessageItem {
    const start = this.#start;
    this.#start = undefined;
    const { $part } = own(start?.extra);
    const added = addedItem(start?.extra, 'message');
    const current = this.#item;
    if (current instanceof MessageItem && current.speaks && start === undefined) return current;
    const message =
      current instanceof MessageItem && added === undefined
        ? current
        : this.#open('message', added, (begun) => new MessageItem(begun));
    message.begin(kind, isObject($part) ? $part : undefined);
    return message;
  }

  #text(
    block: number,
    event: EventOf<'text-delta' | 'refusal-delta'>,
    kind: 'output_text' | 'refusal',
  ): void {
    this.floor ??= block;
    const logprobs = event.type === 'text-delta' ? event.logprobs : undefined;
    const frame = frameOf(event.extra);
    if (event.text === '' && logprobs === undefined && frame === undefined) return;
    this.#part(kind).delta(event.text, logprobs, frame);
  }

  #cite(block: number, { citation }: EventOf<'citation'>): void {
    this.floor ??= block;
    const message = this.#part('output_text');
    if (!message.annotate((length) => writeAnnotation(citation, length))) this.#lose('citation');
    else if (citation.quote !== undefined) this.#lose('citation.quote');
  }

  #endText(event: EventOf<'text-end' | 'refusal-end'>): void {
    const { $partDone, $done } = own(event.extra);
    const item = this.#item;
    if (item instanceof MessageItem) item.endPart(isObject($partDone) ? $partDone : undefined);
    this.#leave($done);
    if (event.type === 'text-end' && event.proof !== undefined) this.#carry(event.proof, 'text');
  }

  /** The block has ended. Its item is finished now where its provider said how. */
  #leave(done: JsonObject[string]): void {
    this.floor = undefined;
    this.#start = undefined;
    if (isObject(done) && done.type === this.#item?.type) this.#close('completed', done);
  }

  #beginReasoning(block: number, event: EventOf<'reasoning-start'>): void {
    if (this.floor !== undefined) return;
    this.floor = block;
    this.#start = event;
    if (addedItem(event.extra, 'reasoning') !== undefined) this.#reasoning();
  }

  #reasoning(): ReasoningItem {
    const start = this.#start;
    this.#start = undefined;
    const current = this.#item;
    if (current instanceof ReasoningItem && start === undefined) return current;
    const added = addedItem(start?.extra, 'reasoning');
    return this.#open('reasoning', added, (begun) => new ReasoningItem(begun));
  }

  #think(block: number, event: EventOf<'reasoning-delta'>): void {
    if (this.floor === undefined) this.#takeFloor(block, 'reasoning-start');
    const { $part, $separator } = own(event.extra);
    const frame = frameOf(event.extra);
    if ($separator === true) return;
    if (isObject($part)) {
      const { place, as } = $part;
      this.#reasoning().begin(place === 'content' ? 'content' : 'summary', isObject(as) ? as : undefined);
    }
    if (event.text === '' && frame === undefined) return;
    const item = this.#reasoning();
    if (!item.speaks) item.begin(this.#shown);
    item.delta(event.text, frame);
  }

  #endReasoning(block: number, { proof, extra }: EventOf<'reasoning-end'>): void {
    if (this.floor === undefined) this.#takeFloor(block, 'reasoning-start');
    if (proof !== undefined) this.#reasoning().prove(proof);
    const item = this.#item;
    if (item instanceof ReasoningItem) item.endPart();
    this.#leave(own(extra).$done);
  }

  /** A block that never said that it begins. */
  #takeFloor(block: number, type: 'reasoning-start'): void {
    this.floor = block;
    this.#start = { type, block, choice: 0 };
  }

  /** A proof that text and calls have no field for rides in a reasoning item of its own, for the way back. */
  #carry(proof: Proof, on: 'text' | 'tool-call'): void {
    this.#open('reasoning', undefined, (begun) => new ReasoningItem(begun)).prove(proof, on);
    this.#close('completed');
  }

  #beginCall(block: number, event: EventOf<'tool-start'>): void {
    if (this.floor !== undefined) return;
    if (event.proof !== undefined) this.#carry(event.proof, 'tool-call');
    this.floor = block;
    const { $item } = own(event.extra);
    const custom = event.custom === true;
    const written = isObject($item) ? $item : undefined;
    this.#spellings ??= toolSpellings(this.#context.expanded ?? this.#context.body);
    const spelling = spellingOf({ name: event.name, custom }, written, this.#spellings);
    const added = addedItem(event.extra, spelling.call);
    this.#open(spelling.call, added, (place) => {
      const call = { callId: this.#freshCallId(event.id, place.index), spelling, custom };
      return actionField(spelling.call) === undefined
        ? new CallItem(place, call)
        : new ActionItem(place, call);
    });
  }

  /** Results are matched by the ids of their calls, so none may come twice. */
  #freshCallId(wanted: string, index: number): string {
    const base = wanted === '' ? callId(this.#response, index) : wanted;
    return numbered(base, this.#callIds);
  }

  #input(block: number, event: EventOf<'tool-delta'>): void {
    const item = this.#item;
    if (this.floor !== block || !(item instanceof CallItem || item instanceof ActionItem)) return;
    const frame = frameOf(event.extra);
    if (event.input !== '' || frame !== undefined) item.delta(event.input, frame);
  }

  #endCall({ extra }: EventOf<'tool-end'>): void {
    if (this.floor === undefined) return;
    const { $done, $empty } = own(extra);
    const item = this.#item;
    if (item instanceof CallItem || item instanceof ActionItem) item.end($empty === true);
    this.#leave($done);
  }

  #beginMedia(block: number, event: EventOf<'media-start'>): void {
    if (this.floor !== undefined) return;
    this.floor = block;
    this.#start = event;
    if (event.media !== 'image') this.#lose('media');
    else if (addedItem(event.extra, imageType) !== undefined) this.#image();
  }

  #image(): ImageItem | undefined {
    const start = this.#start;
    if (start === undefined) return this.#item instanceof ImageItem ? this.#item : undefined;
    if (start.type !== 'media-start' || start.media !== 'image') return undefined;
    this.#start = undefined;
    return this.#open(
      imageType,
      addedItem(start.extra, imageType),
      (begun) => new ImageItem(begun, start.mimeType),
    );
  }

  #media(block: number, event: EventOf<'media-delta'>): void {
    if (this.floor !== block) return;
    if (event.data !== undefined && event.data !== '') this.#image()?.data(event.data);
    if (event.transcript !== undefined) this.#lose('media');
  }

  #endMedia({ url, extra }: EventOf<'media-end'>): void {
    if (this.floor === undefined) return;
    if (url !== undefined) this.#lose('media.url');
    this.#leave(own(extra).$done);
  }

  #opaque(block: number, value: JsonObject): void {
    const type = textOf(value.type);
    const { item, ...frame } = value;
    const here = this.floor === block;
    if (!here && !isObject(item)) return this.#lose(`opaque.${type}`);
    if (!here && isObject(item)) {
      this.floor = block;
      this.#open(textOf(item.type), item, (begun) => new OpaqueItem(begun, item, frame));
    }
    const current = this.#item;
    if (type === 'response.output_item.done') {
      if (current instanceof OpaqueItem && isObject(item)) this.#leave(item);
    } else if (type !== 'response.output_item.added' && current !== undefined) {
      if (!(current instanceof OpaqueItem) && isOrdinary(type)) return;
      const id = value.item_id === undefined ? {} : { item_id: current.id };
      this.#writer.say(type, { ...value, output_index: current.index, ...id });
    }
  }
}

/** The client wants its reasoning as a summary, by the name in force or by the old one. */
function asksSummary({ reasoning }: JsonObject): boolean {
  return isObject(reasoning) && (given(reasoning.summary) || given(reasoning.generate_summary));
}
