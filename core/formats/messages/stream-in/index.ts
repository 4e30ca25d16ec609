import type { GatewayEvent } from '../../../model/event.ts';
import {
  isObject,
  parseObject,
  type JsonObject,
  type JsonValue,
  type MutableObject,
} from '../../../model/json.ts';
import { OpenBlocks, type OpenBlock } from '../../_shared/open-blocks.ts';
import { isText, objectsOf, textOf, setOf } from '../../_shared/fields.ts';
import { brokenArguments } from '../../_shared/call-arguments.ts';
import { typed } from '../../_shared/stream-frames.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { upstreamError, cutShort, tellsError, unusable } from '../../_shared/upstream-error/index.ts';
import type { Frame, StreamDecoder } from '../../../sdk/format.ts';
import { decodeCitation } from '../citations.ts';
import { decodeUsage, mergeUsage } from '../usage.ts';
import { formatName, keepFrame, unknownIn, withExtra } from '../wire.ts';
import { unfold } from '../whole.ts';
import type { Kept } from '../../_shared/extra.ts';
import { reasonOfStop } from '../finish.ts';

const none: readonly GatewayEvent[] = [];

interface InBlock extends Kept {
  readonly block: number;
  readonly choice: number;
}

/** Turns a provider's frames into events. What it does not know travels verbatim as `opaque`. */
export class MessagesStreamDecoder implements StreamDecoder {
  readonly #open = new OpenBlocks(endWords);
  #started = false;
  #finished = false;
  #stopped = false;
  #calls = false;
  #usage: JsonObject | undefined;

  frame(frame: Frame): readonly GatewayEvent[] {
    const { data } = frame;
    if (data === '' || data === '[DONE]') return none;
    const value = parseObject(data);
    if (value === undefined) throw unusable('sent an event that is not a JSON object');
    return this.json(typed(value, frame));
  }

  /** One frame, parsed. */
  json(frame: JsonObject): readonly GatewayEvent[] {
    switch (frame.type) {
      case 'content_block_delta':
        return this.#delta(frame);
      case 'content_block_start':
        return this.#blockStart(frame);
      case 'content_block_stop':
        return this.#blockStop(frame);
      case 'message_start':
        return this.#start(frame);
      case 'message_delta':
        return this.#messageDelta(frame);
      case 'message_stop':
        return this.#stop(frame);
      case 'ping':
        return none;
      case 'message':
        return this.#whole(frame);
      default:
        return this.#other(frame);
    }
  }

  end(): readonly GatewayEvent[] {
    if (!this.#finished && !this.#stopped) {
      throw cutShort();
    }
    const events: GatewayEvent[] = [];
    this.#open.closeAll(events);
    return events;
  }

  #start(frame: JsonObject): readonly GatewayEvent[] {
    if (this.#started || !isObject(frame.message)) return none;
    this.#started = true;
    const { message } = frame;
    const rest = unknownIn(message, startFields, frame, 'message');
    if (isObject(message.usage)) rest.$usage = message.usage;
    const events: GatewayEvent[] = [
      {
        type: 'head',
        id: textOf(message.id),
        model: textOf(message.model),
        ...withExtra(rest),
      },
    ];
    this.#count(message.usage, events);
    return events;
  }

  /** A whole reply inside a stream: upstreams without streaming send one. */
  #whole(reply: JsonObject): readonly GatewayEvent[] {
    return unfold(reply).flatMap((frame) => this.json(frame));
  }

  #blockStart(frame: JsonObject): readonly GatewayEvent[] {
    const content = frame.content_block;
    if (!isObject(content)) throw unusable('sent a block without content');
    const index = indexOf(frame);
    const events: GatewayEvent[] = [];
    this.#open.close(index, events);
    const opened = this.#open.begin(kinds.get(content.type) ?? 'opaque', index);
    if (content.type === 'redacted_thinking') opened.redacted = textOf(content.data);
    this.#begin(opened, content, frame, events);
    return events;
  }

  #begin(opened: OpenBlock, content: JsonObject, frame: JsonObject, events: GatewayEvent[]): void {
    const { kind, block } = opened;
    if (kind === 'opaque' || kind === 'media') {
      events.push(opaque(frame));
      return;
    }
    const rest = unknownIn(content, blockFields[kind], frame, 'content_block', 'index');
    if (kind === 'text' && content.citations !== undefined) {
      rest.$citations = content.citations === null ? null : [];
    }
    const base = { block, choice: 0, ...withExtra(rest) };
    if (kind === 'tool') {
      this.#beginTool(opened, base, content, events);
    } else {
      events.push({ type: `${kind}-start`, ...base });
      beginWords(opened, content, events);
    }
  }

  #beginTool(
    opened: OpenBlock,
    base: InBlock,
    { id, name: tool, input }: JsonObject,
    events: GatewayEvent[],
  ): void {
    this.#calls = true;
    events.push({
      type: 'tool-start',
      ...base,
      id: isText(id) ? spellToolId(id) : '',
      name: textOf(tool),
    });
    // Some upstreams send the input with the start, some of them in pieces as well: the pieces win.
    if (isObject(input) && Object.keys(input).length > 0)
      opened.input = brokenArguments(input) ?? written(input);
  }

  #delta(frame: JsonObject): readonly GatewayEvent[] {
    const { delta } = frame;
    if (!isObject(delta)) throw unusable('sent a piece of a block without content');
    const opened = this.#open.at(indexOf(frame));
    if (opened?.kind === 'opaque') return [opaque(frame)];
    switch (delta.type) {
      case 'text_delta':
        return this.#text('text', delta.text, delta, 'text', frame);
      case 'thinking_delta':
        return this.#text('reasoning', delta.thinking, delta, 'thinking', frame);
      case 'input_json_delta': {
        if (opened?.kind !== 'tool') throw unusable('sent a piece of a tool call without its start');
        const input = textOf(delta.partial_json);
        if (input !== '') opened.input = '';
        const base = { block: opened.block, choice: 0, ...restOf(delta, 'partial_json', frame) };
        return [{ type: 'tool-delta', ...base, input }];
      }
      case 'signature_delta': {
        const events: GatewayEvent[] = [];
        const block = this.#open.need('reasoning', indexOf(frame), events);
        if (typeof delta.signature === 'string') block.signature += delta.signature;
        return events;
      }
      case 'citations_delta': {
        if (!isObject(delta.citation)) return none;
        const events: GatewayEvent[] = [];
        const { block } = this.#open.need('text', indexOf(frame), events);
        const base = { block, choice: 0, ...restOf(delta, 'citation', frame) };
        events.push({ type: 'citation', ...base, citation: decodeCitation(delta.citation) });
        return events;
      }
      default:
        return opened === undefined ? none : [opaque(frame)];
    }
  }

  #text(
    kind: 'text' | 'reasoning',
    value: JsonValue | undefined,
    delta: JsonObject,
    key: string,
    frame: JsonObject,
  ): readonly GatewayEvent[] {
    if (typeof value !== 'string') return none;
    const events: GatewayEvent[] = [];
    const { block } = this.#open.need(kind, indexOf(frame), events);
    events.push({ type: `${kind}-delta`, block, choice: 0, ...restOf(delta, key, frame), text: value });
    return events;
  }

  #blockStop(frame: JsonObject): readonly GatewayEvent[] {
    const events: GatewayEvent[] = [];
    this.#open.close(indexOf(frame), events, frame);
    return events;
  }

  #messageDelta(frame: JsonObject): readonly GatewayEvent[] {
    const events: GatewayEvent[] = [];
    this.#count(frame.usage, events);
    const delta = isObject(frame.delta) ? frame.delta : {};
    if (typeof delta.stop_reason !== 'string' || this.#finished) return events;
    const ends: GatewayEvent[] = [];
    this.#open.closeAll(ends);
    this.#finished = true;
    const rest = unknownIn(delta, stopFields, frame, 'delta', 'usage');
    if (isObject(frame.usage)) rest.$usage = Object.keys(frame.usage);
    events.push({
      type: 'finish',
      choice: 0,
      reason: reasonOfStop[delta.stop_reason] ?? 'other',
      raw: delta.stop_reason,
      format: formatName,
      ...(typeof delta.stop_sequence === 'string' ? { stopSequence: delta.stop_sequence } : {}),
      ...withExtra(rest),
    });
    return ends.length === 0 ? events : [...ends, ...events];
  }

  #stop(frame: JsonObject): readonly GatewayEvent[] {
    if (this.#stopped) return none;
    this.#stopped = true;
    const events: GatewayEvent[] = [];
    this.#open.closeAll(events);
    if (!this.#finished) {
      this.#finished = true;
      events.push({ type: 'finish', choice: 0, reason: this.#calls ? 'tool-calls' : 'stop' });
    }
    if (Object.keys(frame).length > 1) events.push(opaque(frame));
    return events;
  }

  #other(frame: JsonObject): readonly GatewayEvent[] {
    const isUntyped = typeof frame.type !== 'string';
    if (frame.type === 'error' || (isUntyped && tellsError(frame))) throw upstreamError(200, written(frame));
    // An event of a kind that is not known yet: the same format passes it on, others have no place for it.
    return !isUntyped && this.#started ? [opaque(frame)] : none;
  }

  #count(value: JsonValue | undefined, events: GatewayEvent[]): void {
    if (!isObject(value) || Object.keys(value).length === 0) return;
    this.#usage = mergeUsage(this.#usage, value);
    events.push({ type: 'usage', usage: decodeUsage(this.#usage) });
  }
}

const startFields = setOf('id type role model content stop_reason stop_sequence usage');
const stopFields = setOf('stop_reason stop_sequence');

const blockFields: Readonly<Record<'text' | 'reasoning' | 'tool', ReadonlySet<string>>> = {
  text: setOf('type text citations'),
  reasoning: setOf('type thinking signature data'),
  tool: setOf('type id name input'),
};

const kinds = new Map<unknown, 'text' | 'reasoning' | 'tool'>([
  ['text', 'text'],
  ['thinking', 'reasoning'],
  ['redacted_thinking', 'reasoning'],
  ['tool_use', 'tool'],
]);

/** The words that a block already has when it starts. */
function beginWords(opened: OpenBlock, content: JsonObject, events: GatewayEvent[]): void {
  const { block, kind } = opened;
  const base = { block, choice: 0 };
  const words = kind === 'text' ? content.text : content.thinking;
  if (isText(words))
    events.push({ type: kind === 'text' ? 'text-delta' : 'reasoning-delta', ...base, text: words });
  if (typeof content.signature === 'string') opened.signature = content.signature;
  if (kind !== 'text') return;
  for (const citation of objectsOf(content.citations))
    events.push({ type: 'citation', ...base, citation: decodeCitation(citation) });
}

const endWords: ConstructorParameters<typeof OpenBlocks>[0] = {
  format: formatName,
  stop: (index, frame) => opaque(frame ?? { type: 'content_block_stop', index }),
  extra(frame) {
    const rest: MutableObject = {};
    keepFrame(rest, frame, 'index');
    return withExtra(rest);
  },
};

/** `{extra}` with the unknown fields of a delta and of its frame; nothing is allocated for the ordinary one. */
function restOf(delta: JsonObject, key: string, frame: JsonObject): Kept {
  let odd = false;
  for (const field in delta) if (field !== 'type' && field !== key) odd = true;
  for (const field in frame) if (field !== 'type' && field !== 'index' && field !== 'delta') odd = true;
  if (!odd) return ordinary;
  const rest: MutableObject = {};
  for (const field in delta) if (field !== 'type' && field !== key) rest[field] = delta[field];
  keepFrame(rest, frame, 'delta', 'index');
  return withExtra(rest);
}

const ordinary: Kept = {};

function opaque(value: JsonObject): GatewayEvent {
  return { type: 'opaque', format: formatName, value, choice: 0 };
}

function indexOf(frame: JsonObject): number {
  return typeof frame.index === 'number' ? frame.index : 0;
}

function written(input: JsonObject): string {
  try {
    return JSON.stringify(input);
  } catch {
    throw unusable('sent something nested too deeply');
  }
}
