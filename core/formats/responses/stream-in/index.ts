import type { FinishReason, GatewayEvent } from '../../../model/event.ts';
import { parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { BlockCounter } from '../../_shared/blocks.ts';
import { typed } from '../../_shared/stream-frames.ts';
import {
  upstreamError,
  truncatedResponse,
  tellsError,
  unusableResponse,
} from '../../_shared/upstream-error/index.ts';
import type { Frame, StreamDecoder } from '../../../sdk/format.ts';
import {
  CallDecoder,
  ImageDecoder,
  OpaqueDecoder,
  opaqueFrame,
  ReasoningDecoder,
  type ItemDecoder,
} from './items.ts';
import { MessageDecoder } from './message.ts';
import { defined, objectsOf, secondOf, textOf } from '../../_shared/fields.ts';
import { readCall } from '../tools/calls.ts';
import { readUsage } from '../usage.ts';
import { formatName, withExtra } from '../wire.ts';
import { OpenItems, type OpenItem } from './open-items.ts';
import { begunItem, itemOf, objectFields, unfold } from './response.ts';
import { lookupTable } from '../../../model/lookup-table.ts';

/** Most items that one reply may hold. */
const mostItems = 1024;
const none: readonly GatewayEvent[] = [];

/** Decodes a stream, also of providers that omit events, as long as their data arrives later. */
export class ResponsesStreamDecoder implements StreamDecoder {
  readonly #blocks = new BlockCounter();
  readonly #open = new OpenItems();
  /** Places in the output, and ids of items, that were read. */
  readonly #seen = new Set<number>();
  readonly #seenIds = new Set<string>();
  /** No place below this one is free: those that are taken stay so. */
  #free = 0;
  /** Events of items that were begun inside others, by their place: they wait, so that all come in the order of the output. */
  readonly #held = new Map<number, { readonly item: JsonObject; readonly events: GatewayEvent[] }>();
  #begun = false;
  #over = false;
  #calls = false;

  frame(frame: Frame): readonly GatewayEvent[] {
    const { data } = frame;
    if (this.#over || data === '' || data.trim() === '[DONE]') return none;
    const value = parseObject(data);
    if (value === undefined) throw unusableResponse('sent an event that cannot be read');
    return this.json(typed(value, frame));
  }

  /** Decodes a parsed frame. */
  json(frame: JsonObject): readonly GatewayEvent[] {
    if (this.#over) return none;
    const out: GatewayEvent[] = [];
    switch (frame.type) {
      case 'response.output_item.added':
        if (isObject(frame.item)) this.#add(frame.item, frame, out);
        break;
      case 'response.output_item.done':
        if (isObject(frame.item)) this.#done(frame.item, frame, out);
        break;
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        this.#begin(frame.response, out);
        break;
      case 'response.completed':
      case 'response.incomplete':
        this.#finish(frame, out);
        break;
      case 'response.failed':
      case 'response.cancelled':
      case 'error':
        throw upstreamError(200, JSON.stringify(frame));
      default:
        this.#other(frame, out);
    }
    return out;
  }

  end(): readonly GatewayEvent[] {
    if (!this.#over) throw truncatedResponse();
    return none;
  }

  #begin(response: JsonValue | undefined, out: GatewayEvent[]): void {
    if (this.#begun) return;
    this.#begun = true;
    const head = isObject(response) ? response : {};
    const { id, model, created_at: created } = head;
    out.push({
      type: 'head',
      id: textOf(id),
      model: textOf(model),
      ...defined({ created: secondOf(created) }),
      ...(isObject(response) ? withExtra(objectFields(response)) : {}),
    });
  }

  #add(item: JsonObject, frame: JsonObject, out: GatewayEvent[]): void {
    this.#begin(undefined, out);
    const index = this.#indexOf(frame, textOf(item.id));
    if (this.#isTaken(index)) return;
    const open = this.#opened(index, item, out);
    if (open.decoder instanceof OpaqueDecoder)
      open.decoder.frame({ ...frame, output_index: index }, this.#eventsOf(index, out));
  }

  #opened(index: number, item: JsonObject, out: GatewayEvent[]): OpenItem {
    if (this.#seen.size + this.#open.size >= mostItems) throw unusableResponse('sent too many items');
    const inside = this.#isInside(index, item);
    // A new message ends the previous one, also without an event for its end.
    if (!inside && speaks(item)) this.#release(out, true);
    if (inside || this.#held.size > 0) this.#held.set(index, { item, events: [] });
    const decoder = this.#decoderOf(item, this.#eventsOf(index, out));
    const open = { index, id: textOf(item.id), item, decoder };
    this.#open.add(open);
    return open;
  }

  /** Returns true while an earlier item is open that this one cannot interrupt. Tool calls can be open at the same time. */
  #isInside(index: number, item: JsonObject): boolean {
    for (const open of speaks(item) ? this.#open.calls : this.#open.messages)
      if (open.index < index && !this.#held.has(open.index)) return true;
    return false;
  }

  /** Returns the list for events of an item. */
  #eventsOf(index: number, out: GatewayEvent[]): GatewayEvent[] {
    return this.#held.get(index)?.events ?? out;
  }

  /** Lets go what need not wait any more: all of it, or the first until one must wait on. */
  #release(out: GatewayEvent[], all: boolean): void {
    for (const [index, { item, events }] of this.#held) {
      if (!all && this.#isInside(index, item)) return;
      this.#held.delete(index);
      for (const event of events) out.push(event);
    }
  }

  #decoderOf(item: JsonObject, out: GatewayEvent[]): ItemDecoder {
    switch (item.type) {
      case 'message':
        return new MessageDecoder(() => this.#blocks.next(), { ...item, content: [] });
      case 'reasoning':
        return new ReasoningDecoder(this.#blocks.next(), item, out);
      case 'image_generation_call':
        return new ImageDecoder(this.#blocks.next(), item, out);
      default:
        if (readCall(item) === undefined) return new OpaqueDecoder();
        this.#calls = true;
        return new CallDecoder(this.#blocks.next(), item, out);
    }
  }

  #done(item: JsonObject, frame: JsonObject, out: GatewayEvent[]): void {
    this.#begin(undefined, out);
    const index = this.#indexOf(frame, textOf(item.id));
    if (this.#seen.has(index)) return;
    this.#close(index, item, { ...frame, output_index: index }, out);
  }

  /** Finishes an item, also one without earlier events. */
  #close(index: number, item: JsonObject, frame: JsonObject, out: GatewayEvent[]): void {
    let open = this.#open.at(index);
    if (open === undefined) {
      const begun = begunItem(item);
      open = this.#opened(index, begun, out);
      if (open.decoder instanceof OpaqueDecoder)
        open.decoder.frame(
          { ...frame, type: 'response.output_item.added', item: begun },
          this.#eventsOf(index, out),
        );
    }
    this.#open.delete(open);
    this.#seen.add(index);
    if (textOf(item.id) !== '') this.#seenIds.add(textOf(item.id));
    open.decoder.done(item, frame, this.#eventsOf(index, out));
    this.#release(out, false);
  }

  /** Returns the index of an item; the next free one if the upstream sends none. */
  #indexOf(frame: JsonObject, id: string): number {
    if (typeof frame.output_index === 'number') return frame.output_index;
    const known = id === '' ? undefined : this.#open.withId(id);
    if (known !== undefined) return known.index;
    while (this.#isTaken(this.#free)) this.#free += 1;
    return this.#free;
  }

  #isTaken(index: number): boolean {
    return this.#seen.has(index) || this.#open.at(index) !== undefined;
  }

  #other(frame: JsonObject, out: GatewayEvent[]): void {
    const { type } = frame;
    if (typeof type !== 'string' && tellsError(frame)) throw upstreamError(200, JSON.stringify(frame));
    if (frame.object === 'response' && type === undefined) {
      for (const one of unfold(frame)) for (const event of this.json(one)) out.push(event);
      return;
    }
    if (typeof type !== 'string' || type === 'keepalive') return;
    const known = this.#find(frame);
    if (known !== undefined) return known.decoder.frame(frame, this.#eventsOf(known.index, out));
    const opens = itemOf(type);
    if (opens !== undefined) {
      // A piece of an item that was never added: it begins here.
      const index = this.#indexOf(frame, '');
      if (this.#seen.has(index)) return;
      this.#begin(undefined, out);
      const item = typeof frame.item_id === 'string' ? { ...opens, id: frame.item_id } : opens;
      this.#opened(index, item, out).decoder.frame(frame, out);
    } else if (this.#begun && !this.#seen.has(Number(frame.output_index))) out.push(opaqueFrame(frame));
  }

  /** Returns the open item of a frame; the last one if the frame names none. */
  #find({ output_index: index, item_id: id }: JsonObject): OpenItem | undefined {
    if (typeof index === 'number') return this.#open.at(index);
    return typeof id === 'string' ? this.#open.withId(id) : this.#open.last();
  }

  #finish(frame: JsonObject, out: GatewayEvent[]): void {
    const response = isObject(frame.response) ? frame.response : {};
    if (response.status === 'failed' || isObject(response.error))
      throw upstreamError(200, JSON.stringify(frame));
    this.#begin(response, out);
    const output = objectsOf(response.output);
    for (const open of this.#open.all()) {
      const { index } = open;
      const last = output[index];
      const item = last !== undefined && last.type === open.item.type ? last : open.item;
      const type = 'response.output_item.done';
      this.#close(index, item, { type, output_index: index, item }, out);
    }
    output.forEach((item, index) => {
      if (this.#seen.has(index) || this.#seenIds.has(textOf(item.id))) return;
      this.#close(index, item, { type: 'response.output_item.done', output_index: index, item }, out);
    });
    this.#release(out, true);
    this.#over = true;
    const cut = frame.type === 'response.incomplete' || response.status === 'incomplete';
    const details = isObject(response.incomplete_details) ? response.incomplete_details : {};
    const raw = cut ? textOf(details.reason) : 'completed';
    out.push({
      type: 'finish',
      choice: 0,
      reason: cut ? (reasons[raw] ?? 'other') : this.#calls ? 'tool-calls' : 'stop',
      raw,
      format: formatName,
      ...withExtra(objectFields(response)),
    });
    if (isObject(response.usage)) out.push({ type: 'usage', usage: readUsage(response.usage, response) });
  }
}

/** Returns true for texts and reasoning of the model. */
function speaks({ type }: JsonObject): boolean {
  return type === 'message' || type === 'reasoning';
}

/** Returns the reason of an incomplete response; without a reason, the output limit is the most likely. */
const reasons = lookupTable<FinishReason>({
  max_output_tokens: 'length',
  '': 'length',
  content_filter: 'content-filter',
});
