import type { GatewayError } from '../../../sdk/errors.ts';
import type { FinishReason, HeadEvent } from '../../../model/event.ts';
import type { Extra } from '../../../model/extra.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { FloorEncoder, type EventOf, type EncodedEvent } from '../../_shared/floor.ts';
import type { ReplyContext, WireFrame } from '../../../sdk/format.ts';
import { FrameWriter, isOrdinary } from './frames.ts';
import { OutputWriter } from './items.ts';
import { errorEvent, failureOf } from '../errors.ts';
import { responseId } from '../ids.ts';
import { textOf, setOf } from '../../_shared/fields.ts';
import { responseObject, type Snapshot } from './response.ts';
import { writeUsage } from '../usage.ts';
import { formatName, own } from '../wire.ts';

/** Encodes a stream: the output items in sequence, and a last event with the whole response. */
export class ResponsesStreamEncoder extends FloorEncoder {
  readonly #writer = new FrameWriter();
  #output: OutputWriter | undefined;
  #id = '';
  #created = 0;
  #provider: JsonObject | undefined;
  /** The provider's numbers and ids of items that travel as they are → the blocks that they became here. */
  readonly #blocksByIndex = new Map<number, number>();
  readonly #blocksById = new Map<string, number>();
  #invented = 0;

  constructor(context: ReplyContext) {
    super(formatName, context);
  }

  passed(frames: Buffer): void {
    this.#writer.goOnAfter(frames);
  }

  protected get floor(): number | undefined {
    return this.#output?.floor;
  }

  protected emitHead(head: HeadEvent | undefined): void {
    const { $response } = own(head?.extra);
    this.#provider = isObject($response) ? $response : undefined;
    this.#id = responseId(head?.id ?? '', this.context.requestId);
    this.#created = head?.created ?? this.context.created;
    this.#output = new OutputWriter(this.#writer, this.#id, this.context, (path) => this.losses.drop(path));
    for (const type of ['created', 'in_progress'])
      this.#lifecycle(type, { status: 'in_progress', provider: this.#provider });
  }

  protected override route(block: number, event: EncodedEvent): void {
    if (event.type !== 'opaque' && event.extra !== undefined) this.#name(block, event.extra);
    super.route(block, event);
  }

  protected emitEvent(block: number, event: EncodedEvent): void {
    this.#output?.event(block, event);
  }

  protected endFloor(): void {
    this.#output?.endFloor();
  }

  protected override finished(): void {
    this.#output?.settle(ending(this.finish).status);
  }

  protected emitEnd(): void {
    const output = this.#output;
    if (output === undefined) return;
    const { status, reason } = ending(this.finish, output.refused);
    output.settle(status);
    const { $response } = own(this.finish?.extra);
    const native = isObject($response) ? $response : undefined;
    // Clients that read the first item of an answer must find one, were it empty.
    if (output.items.length === 0 && native === undefined) output.emitEmptyMessage(status);
    const usage = this.usage === undefined && native !== undefined ? undefined : writeUsage(this.usage);
    this.#lifecycle(status, { status, reason, usage, provider: native ?? this.#provider });
    this.#writer.end();
  }

  /**
   * The flat `error` event, which the official client raises as an APIError with its message, then `response.failed`: agents that pass
   * over `error` wait for a last event that holds a response, and read the error's code there. The official stream says both in this
   * order. Before anything was written, and behind a stream that passed through, nothing is known of a response: `error` stands alone.
   */
  protected emitError(error: GatewayError): void {
    this.#writer.emit('error', errorEvent(error));
    if (this.#output === undefined) return;
    const usage = this.usage === undefined ? undefined : writeUsage(this.usage);
    const provider = this.#provider;
    this.#lifecycle('failed', { status: 'failed', error: failureOf(error), usage, provider });
    this.#writer.end();
  }

  protected takeFrames(): readonly WireFrame[] {
    return this.#writer.take();
  }

  #lifecycle(type: string, snapshot: Omit<Snapshot, 'id' | 'created' | 'output'>): void {
    const response = responseObject(
      { id: this.#id, created: this.#created, output: [...(this.#output?.items ?? [])], ...snapshot },
      this.context,
    );
    this.#writer.emit(`response.${type}`, { response });
  }

  /** Remembers under which id a provider of this format knows a block: its other events name it so. */
  #name(block: number, extra: Extra): void {
    const { $item } = own(extra);
    if (isObject($item) && typeof $item.id === 'string') this.#blocksById.set($item.id, block);
  }

  /** Writes an event that only this format knows, in its item or between the others. */
  protected takeOpaque(value: JsonObject, event: EventOf<'opaque'>): void {
    const type = textOf(value.type);
    if (type === '' || reserved.has(type)) return;
    const { output_index: index, item_id, item, ...rest } = value;
    const id = isObject(item) ? item.id : item_id;
    if (typeof index !== 'number' && typeof id !== 'string' && !isObject(item)) {
      // An event of an item without its id is dropped, because its position is unknown.
      if (isOrdinary(type) || type.includes('_call.')) return this.losses.drop(`opaque.${type}`);
      return this.#writer.emit(type, rest);
    }
    const known = typeof id === 'string' ? this.#blocksById.get(id) : undefined;
    const placed = typeof index === 'number' ? this.#blocksByIndex.get(index) : undefined;
    const block = type === added ? undefined : (known ?? placed);
    if (block !== undefined) return this.route(block, event);
    const opens = type === added || type === 'response.output_item.done';
    if (!opens || !isObject(item) || textOf(item.type) === '') return this.losses.drop(`opaque.${type}`);
    this.#invented -= 1;
    if (typeof index === 'number') this.#blocksByIndex.set(index, this.#invented);
    if (typeof id === 'string') this.#blocksById.set(id, this.#invented);
    this.route(this.#invented, event);
  }
}

const added = 'response.output_item.added';

/** Events that only the encoder may write. */
const reserved = setOf(
  'response.created response.in_progress response.queued response.completed response.incomplete response.failed error',
);

const cut: ReadonlySet<FinishReason> = new Set(['length', 'context-window']);

/** Status and reason of a response that ended so. A model that declined in words has completed its answer. */
function ending(
  finish: EventOf<'finish'> | undefined,
  refused = false,
): { readonly status: 'completed' | 'incomplete'; readonly reason?: string } {
  const { reason = 'stop', raw, format } = finish ?? {};
  if (cut.has(reason)) return { status: 'incomplete', reason: 'max_output_tokens' };
  if (reason === 'content-filter' || (reason === 'refusal' && !refused))
    return { status: 'incomplete', reason: 'content_filter' };
  // Other words of this format for an answer that is not complete.
  if (reason === 'other' && format === formatName && raw !== undefined)
    return { status: 'incomplete', reason: raw };
  return { status: 'completed' };
}
