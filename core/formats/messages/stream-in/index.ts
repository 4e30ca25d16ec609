/** Reads a provider's messages stream. */
import type { GatewayEvent } from '../../../model/event.ts';
import { parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { OpenBlocks, type OpenBlock } from '../../_shared/open-blocks.ts';
import { isText, objectsOf, textOf, setOf } from '../../_shared/fields.ts';
import { brokenArguments } from '../../../json/arguments.ts';
import { typed } from '../../_shared/stream-frames.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import {
  upstreamError,
  truncatedResponse,
  tellsError,
  unusableResponse,
} from '../../_shared/upstream-error/index.ts';
import type { Frame, StreamDecoder } from '../../../sdk/format.ts';
import { decodeCitation } from '../citations.ts';
import { decodeUsage, mergeUsage } from '../usage.ts';
import { formatName, keepFrame, unknownIn, withExtra } from '../wire.ts';
import { unfold } from '../whole.ts';
import type { Kept } from '../../_shared/extra.ts';
import { reasonOfStop } from '../finish.ts';

const none: readonly GatewayEvent[] = [];

/** Decodes a provider's frames to events. Unknown frames become `opaque` events. */
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
    if (value === undefined) throw unusableResponse('sent an event that is not a JSON object');
    return this.json(typed(value, frame));
  }

  /** Decodes a parsed frame. */
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
    if (!this.#finished && !this.#stopped) throw truncatedResponse();
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
      { type: 'head', id: textOf(message.id), model: textOf(message.model), ...withExtra(rest) },
    ];
    this.#count(message.usage, events);
    return events;
  }

  /** Decodes a complete response inside of a stream, which providers without streaming send. */
  #whole(reply: JsonObject): readonly GatewayEvent[] {
    return unfold(reply).flatMap((frame) => this.json(frame));
  }

  #blockStart(frame: JsonObject): readonly GatewayEvent[] {
    const content = frame.content_block;
    if (!isObject(content)) throw unusableResponse('sent a block without content');
    const index = indexOf(frame);
    const events: GatewayEvent[] = [];
    this.#open.close(index, events);
    const known = blocks.get(content.type);
    const opened = this.#open.begin(known?.kind ?? 'opaque', index);
    if (known === undefined) {
      events.push(opaque(frame));
      return events;
    }
    const { kind, fields } = known;
    const rest = unknownIn(content, fields, frame, 'content_block', 'index');
    if (kind === 'text' && content.citations !== undefined)
      rest.$citations = content.citations === null ? null : [];
    const base = { block: opened.block, choice: 0, ...withExtra(rest) };
    if (kind === 'tool') {
      this.#calls = true;
      const id = isText(content.id) ? spellToolId(content.id) : '';
      events.push({ type: 'tool-start', ...base, id, name: textOf(content.name) });
    } else events.push({ type: `${kind}-start`, ...base });
    beginContent(opened, content, events);
    return events;
  }

  #delta(frame: JsonObject): readonly GatewayEvent[] {
    const { delta } = frame;
    if (!isObject(delta)) throw unusableResponse('sent a piece of a block without content');
    const index = indexOf(frame);
    const opened = this.#open.at(index);
    if (opened?.kind === 'opaque') return [opaque(frame)];
    const events: GatewayEvent[] = [];
    switch (delta.type) {
      case 'text_delta':
        this.#text('text', delta.text, delta, 'text', frame, events);
        return events;
      case 'thinking_delta':
        this.#text('reasoning', delta.thinking, delta, 'thinking', frame, events);
        return events;
      case 'input_json_delta': {
        if (opened?.kind !== 'tool') throw unusableResponse('sent a piece of a tool call without its start');
        const input = textOf(delta.partial_json);
        if (input !== '') opened.input = '';
        const base = { block: opened.block, choice: 0, ...restOf(delta, 'partial_json', frame) };
        events.push({ type: 'tool-delta', ...base, input });
        return events;
      }
      case 'signature_delta':
        this.#open.need('reasoning', index, events).signature += textOf(delta.signature);
        return events;
      case 'citations_delta': {
        if (!isObject(delta.citation)) return none;
        const { block } = this.#open.need('text', index, events);
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
    text: JsonValue | undefined,
    delta: JsonObject,
    key: string,
    frame: JsonObject,
    events: GatewayEvent[],
  ): void {
    if (typeof text !== 'string') return;
    const { block } = this.#open.need(kind, indexOf(frame), events);
    events.push({ type: `${kind}-delta`, block, choice: 0, ...restOf(delta, key, frame), text });
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

/** The blocks that have a neutral meaning, by their type, with the fields that have one. */
const blocks = new Map<unknown, { kind: 'text' | 'reasoning' | 'tool'; fields: ReadonlySet<string> }>([
  ['text', { kind: 'text', fields: setOf('type text citations') }],
  ['thinking', { kind: 'reasoning', fields: setOf('type thinking signature data') }],
  ['redacted_thinking', { kind: 'reasoning', fields: setOf('type thinking signature data') }],
  ['tool_use', { kind: 'tool', fields: setOf('type id name input') }],
]);

/** Reads the initial content of a block. */
function beginContent(opened: OpenBlock, content: JsonObject, events: GatewayEvent[]): void {
  const { kind, block } = opened;
  const { input } = content;
  const base = { block, choice: 0 };
  if (kind === 'tool') {
    // Some upstreams send the input with the start, some of them in pieces as well: the pieces win.
    if (isObject(input) && Object.keys(input).length > 0)
      opened.input = brokenArguments(input) ?? written(input);
  } else if (kind === 'reasoning') {
    if (isText(content.thinking)) events.push({ type: 'reasoning-delta', ...base, text: content.thinking });
    opened.signature = textOf(content.signature);
    if (content.type === 'redacted_thinking') opened.redacted = textOf(content.data);
  } else {
    if (isText(content.text)) events.push({ type: 'text-delta', ...base, text: content.text });
    for (const citation of objectsOf(content.citations))
      events.push({ type: 'citation', ...base, citation: decodeCitation(citation) });
  }
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

/** Returns `{extra}` with the unknown fields of a delta and of its frame. Allocates nothing if there are none. */
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
    throw unusableResponse('sent something nested too deeply');
  }
}
