/** Writes a messages stream. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import type { HeadEvent } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { BlockEncoder } from '../_shared/block-encoder.ts';
import type { BlockWords, OpenBlock } from '../_shared/block-words.ts';
import { setOf } from '../_shared/fields.ts';
import type { EventOf } from '../_shared/floor.ts';
import { citationForClient } from './citations.ts';
import { errorBody } from './errors.ts';
import { stopOfReason } from './finish.ts';
import { freshCallId, replyId } from './ids.ts';
import { encodeUsage } from './usage.ts';
import { formatName, own, unpack } from './wire.ts';

const blockWords: BlockWords = {
  format: formatName,
  text: (text) => ({ type: 'text_delta', text }),
  thinking: (thinking) => ({ type: 'thinking_delta', thinking }),
  input: (partial_json) => ({ type: 'input_json_delta', partial_json }),
  citation: (citation) => ({ type: 'citations_delta', citation }),
  citationOf: citationForClient,
  emptyInputs: true,
  freshCallId,
  stops: stopOfReason,
  starts: {
    text: { type: 'text', text: '' },
    reasoning: { type: 'thinking', thinking: '', signature: '' },
  },
};

/** Turns events into the client's frames. */
export class MessagesStreamEncoder extends BlockEncoder {
  /** Further members of `message_stop`. */
  #last: JsonObject = {};

  constructor(context: ReplyContext) {
    super(blockWords, context);
  }

  /** Emits the start of the reply, with the usage known so far or an estimate of the input. */
  protected override emitHead(head: HeadEvent | undefined): void {
    super.emitHead(head);
    const { $usage } = own(head?.extra);
    const { inner, frame } = unpack(head?.extra);
    const { usage } = this;
    const message: JsonObject = {
      id: replyId(head?.id ?? ''),
      type: 'message',
      role: 'assistant',
      model: this.context.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...inner,
      usage: isObject($usage) ? $usage : usage === undefined ? estimate(this.context) : encodeUsage(usage),
    };
    this.emit('message_start', { type: 'message_start', message, ...frame });
  }

  protected emitStart(index: number, current: OpenBlock, content: JsonObject): void {
    const { inner, frame } = unpack(current.extra);
    const { $citations: citations } = own(current.extra);
    const content_block = { ...content, ...(citations === undefined ? {} : { citations }), ...inner };
    this.emit('content_block_start', { type: 'content_block_start', index, content_block, ...frame });
    this.quote(index, current);
  }

  protected emitDelta(index: number, delta: JsonObject, extra?: Extra): void {
    if (extra === undefined) {
      this.emit('content_block_delta', { type: 'content_block_delta', index, delta });
      return;
    }
    const { inner, frame } = unpack(extra);
    const json = { type: 'content_block_delta', index, delta: { ...delta, ...inner }, ...frame };
    this.emit('content_block_delta', json);
  }

  protected emitStop(index: number, extra: Extra | undefined): void {
    this.emit('content_block_stop', { type: 'content_block_stop', index, ...unpack(extra).frame });
  }

  /** Emits `message_delta` with the final usage, and `message_stop`. */
  protected emitEnd(): void {
    const { finish } = this;
    const { $usage } = own(finish?.extra);
    const { inner, frame } = unpack(finish?.extra);
    const delta = {
      stop_reason: this.stopReason(),
      stop_sequence: finish?.stopSequence ?? null,
      ...inner,
    };
    const usage = totals(this.usage, $usage, this.context);
    this.emit('message_delta', { type: 'message_delta', delta, usage, ...frame });
    this.emit('message_stop', { ...this.#last, type: 'message_stop' });
  }

  protected override stopReason(): string {
    const { finish, refused } = this;
    const reason = super.stopReason();
    const plain = reason === 'end_turn' && finish?.format !== formatName && finish?.reason !== 'tool-calls';
    return plain && refused ? 'refusal' : reason;
  }

  protected call(id: string, event: EventOf<'tool-start'>): JsonObject {
    return { type: 'tool_use', id, name: event.name, input: {} };
  }

  protected hide(current: OpenBlock, data: string): void {
    this.open(current, { type: 'redacted_thinking', data });
  }

  protected sign(current: OpenBlock, signature: string): void {
    this.emitDelta(this.open(current), { type: 'signature_delta', signature });
  }

  protected emitError(error: GatewayError): void {
    this.emit('error', errorBody(error, this.context.requestId));
  }

  protected override emitKeepAlive(): void {
    this.emit('ping', { type: 'ping' });
  }

  protected locate({ type, index }: JsonObject): ReturnType<BlockEncoder['locate']> {
    return { part: parts.get(type) ?? 'none', index };
  }

  protected emitApart(value: JsonObject): void {
    const { type } = value;
    if (type === 'message_stop') this.#last = value;
    else if (typeof type === 'string' && !reserved.has(type)) this.emit(type, value);
  }

  protected emitOpaque(block: number, value: JsonObject): void {
    const { type } = value;
    const current = type === 'content_block_start' ? this.take(block, 'opaque') : this.current;
    if (current === undefined) return;
    if (type === 'content_block_start') {
      if (current.block === block && current.index === undefined)
        this.emit(type, { ...value, index: this.assignIndex(current) });
    } else if (type === 'content_block_stop') {
      if (current.kind !== 'opaque' || current.index === undefined) return;
      this.current = undefined;
      this.emit(type, { ...value, index: current.index });
    } else if (current.kind === 'opaque' || !isOrdinary(value.delta)) {
      // The ordinary pieces have events of their own: here they would land in a block of another kind.
      this.emit('content_block_delta', { ...value, index: this.open(current) });
    }
  }
}

const parts = new Map<unknown, 'start' | 'delta' | 'stop'>([
  ['content_block_start', 'start'],
  ['content_block_delta', 'delta'],
  ['content_block_stop', 'stop'],
]);
const ordinaryDeltas = setOf('text_delta citations_delta thinking_delta signature_delta input_json_delta');
/** Frames that only the encoder may write. */
const reserved = setOf('message_start message_delta message_stop error ping');

function isOrdinary(delta: unknown): boolean {
  return !isObject(delta) || typeof delta.type !== 'string' || ordinaryDeltas.has(delta.type);
}

function estimate({ inputEstimate }: ReplyContext): JsonObject {
  return {
    input_tokens: inputEstimate,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 0,
  };
}

/** Returns all token counts; for a provider with this format only those in the current frame. */
function totals(usage: Usage | undefined, named: JsonValue | undefined, context: ReplyContext): JsonObject {
  if (usage === undefined) return estimate(context);
  const wire = encodeUsage(usage);
  if (usage.format !== formatName || !Array.isArray(named)) return wire;
  const picked: MutableObject = {};
  for (const key of named as readonly JsonValue[]) if (typeof key === 'string') picked[key] = wire[key];
  picked.output_tokens ??= wire.output_tokens ?? 0;
  return picked;
}
