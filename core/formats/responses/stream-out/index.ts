import type { GatewayError } from '../../../sdk/errors.ts';
import type { FinishReason, GatewayEvent } from '../../../model/event.ts';
import type { Extra } from '../../../model/extra.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import type { Usage } from '../../../model/usage.ts';
import { isReplyEvent } from '../../_shared/blocks.ts';
import { loseForeignReply } from '../../_shared/foreign.ts';
import { WaitingBlocks } from '../../_shared/waiting-blocks.ts';
import type { ReplyContext, StreamEncoder, WireFrame } from '../../../sdk/format.ts';
import { FrameWriter, isOrdinary } from './frames.ts';
import { OutputWriter } from './items.ts';
import { errorEvent, failureOf } from '../errors.ts';
import { responseId } from '../ids.ts';
import { textOf } from '../../_shared/fields.ts';
import { responseObject, type Snapshot } from './response.ts';
import { writeUsage } from '../usage.ts';
import { formatName, own } from '../wire.ts';
import { setOf } from '../../_shared/extra.ts';

type Head = Extract<GatewayEvent, { type: 'head' }>;
type Finish = Extract<GatewayEvent, { type: 'finish' }>;

const none: readonly WireFrame[] = [];

/** Writes a stream: the items of the output one after the other, and one last event with the whole response. */
export class ResponsesStreamEncoder implements StreamEncoder {
  readonly #context: ReplyContext;
  readonly #writer = new FrameWriter();
  readonly #lost = new Set<string>();
  readonly #waiting = new WaitingBlocks();
  #output: OutputWriter | undefined;
  #id = '';
  #created = 0;
  #provider: JsonObject | undefined;
  #usage: Usage | undefined;
  #finish: Finish | undefined;
  /** The provider's numbers and ids of items that travel as they are → the blocks that they became here. */
  readonly #blocksByIndex = new Map<number, number>();
  readonly #blocksById = new Map<string, number>();
  #invented = 0;
  #over = false;

  constructor(context: ReplyContext) {
    this.#context = context;
  }

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#over || !isReplyEvent(event)) return none;
    switch (event.type) {
      case 'head':
        this.#keep(event.extra);
        this.#start(event);
        break;
      case 'usage':
        this.#usage = event.usage;
        return none;
      case 'finish':
        this.#keep(event.extra);
        if (event.choice !== 0) {
          this.#lose('choices');
          break;
        }
        this.#finish = event;
        this.#start().settle(ending(event).status);
        break;
      case 'opaque':
        this.#opaque(event.format, event.value);
        break;
      default:
        this.#keep(event.extra);
        if (event.choice === 0) {
          if (event.extra !== undefined) this.#name(event.block, event.extra);
          this.#route(event.block, event);
        } else this.#lose('choices');
    }
    return this.#writer.take();
  }

  passed(frames: Buffer): void {
    this.#writer.goOnAfter(frames);
  }

  end(): readonly WireFrame[] {
    if (this.#over) return none;
    const output = this.#start();
    const { status, reason } = ending(this.#finish, output.refused);
    output.endFloor();
    while (this.#next(output)) output.endFloor();
    output.settle(status);
    const { $response } = own(this.#finish?.extra);
    const native = isObject($response) ? $response : undefined;
    // Clients that read the first item of an answer must find one, were it empty.
    if (output.items.length === 0 && native === undefined) output.sayNothing(status);
    this.#over = true;
    const usage = this.#usage === undefined && native !== undefined ? undefined : writeUsage(this.#usage);
    this.#lifecycle(status, { status, reason, usage, provider: native ?? this.#provider });
    return this.#writer.take();
  }

  /**
   * The flat `error` event, which the official client raises as an APIError with its message, then `response.failed`: agents that pass
   * over `error` wait for a last event that holds a response, and read the error's code there. The official stream says both in this
   * order. Before anything was written, and behind a stream that passed through, nothing is known of a response: `error` stands alone.
   */
  error(error: GatewayError): readonly WireFrame[] {
    if (this.#over) return none;
    this.#over = true;
    this.#writer.say('error', errorEvent(error));
    if (this.#output !== undefined) {
      const usage = this.#usage === undefined ? undefined : writeUsage(this.#usage);
      const provider = this.#provider;
      this.#lifecycle('failed', { status: 'failed', error: failureOf(error), usage, provider });
    }
    return this.#writer.take();
  }

  keepAlive(): readonly WireFrame[] {
    return none;
  }

  #start(head?: Head): OutputWriter {
    if (this.#output !== undefined) return this.#output;
    const { $response } = own(head?.extra);
    this.#provider = isObject($response) ? $response : undefined;
    this.#id = responseId(head?.id ?? '', this.#context.requestId);
    this.#created = head?.created ?? this.#context.created;
    const output = new OutputWriter(this.#writer, this.#id, this.#context, (path) => this.#lose(path));
    this.#output = output;
    for (const type of ['created', 'in_progress'])
      this.#lifecycle(type, { status: 'in_progress', provider: this.#provider });
    return output;
  }

  #lifecycle(type: string, snapshot: Omit<Snapshot, 'id' | 'created' | 'output'>): void {
    const response = responseObject(
      { id: this.#id, created: this.#created, output: [...(this.#output?.items ?? [])], ...snapshot },
      this.#context,
    );
    this.#writer.say(`response.${type}`, { response });
  }

  /** Sends an event to its block, or lets it wait while another block has the floor. */
  #route(block: number, event: GatewayEvent): void {
    const output = this.#start();
    if (output.floor !== undefined && output.floor !== block) {
      this.#waiting.add(block, event);
      return;
    }
    output.event(block, event);
    while (output.floor === undefined && this.#next(output));
  }

  /** Gives the floor to the block that waits longest; false when none does. */
  #next(output: OutputWriter): boolean {
    const next = this.#waiting.take();
    if (next === undefined) return false;
    for (const event of next.events) output.event(next.block, event);
    return true;
  }

  /** Remembers under which id a provider of this format knows a block: its other events name it so. */
  #name(block: number, extra: Extra): void {
    const { $item } = own(extra);
    if (isObject($item) && typeof $item.id === 'string') this.#blocksById.set($item.id, block);
  }

  /** An event that only this format knows goes where it belongs: to its item, or between the others. */
  #opaque(format: string, value: JsonObject): void {
    const type = textOf(value.type);
    if (format !== formatName) return this.#lose(`opaque.${type === '' ? format : type}`);
    if (type === '' || reserved.has(type)) return;
    this.#start();
    const { output_index: index, item_id, item, ...rest } = value;
    const id = isObject(item) ? item.id : item_id;
    if (typeof index !== 'number' && typeof id !== 'string' && !isObject(item)) {
      // What belongs to an item and does not say to which has no place.
      if (isOrdinary(type) || type.includes('_call.')) return this.#lose(`opaque.${type}`);
      return this.#writer.say(type, rest);
    }
    const known = typeof id === 'string' ? this.#blocksById.get(id) : undefined;
    const placed = typeof index === 'number' ? this.#blocksByIndex.get(index) : undefined;
    const block = type === added ? undefined : (known ?? placed);
    if (block !== undefined) return this.#route(block, { type: 'opaque', format, value });
    const opens = type === added || type === 'response.output_item.done';
    if (!opens || !isObject(item) || textOf(item.type) === '') return this.#lose(`opaque.${type}`);
    this.#invented -= 1;
    if (typeof index === 'number') this.#blocksByIndex.set(index, this.#invented);
    if (typeof id === 'string') this.#blocksById.set(id, this.#invented);
    this.#route(this.#invented, { type: 'opaque', format, value });
  }

  /** Reports what only another format knows. */
  #keep(extra: Extra | undefined): void {
    if (extra !== undefined) loseForeignReply(extra, formatName, (path) => this.#lose(path));
  }

  #lose(path: string): void {
    if (this.#lost.has(path)) return;
    this.#lost.add(path);
    this.#context.lose(path);
  }
}

const added = 'response.output_item.added';

/** Events that the encoder alone may say. */
const reserved = setOf(
  'response.created response.in_progress response.queued response.completed response.incomplete response.failed error',
);

const cut: ReadonlySet<FinishReason> = new Set(['length', 'context-window']);

/** Status and reason of a response that ended so. A model that declined in words has completed its answer. */
function ending(
  finish: Finish | undefined,
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
