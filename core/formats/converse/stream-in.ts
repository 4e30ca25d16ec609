/** Reads a provider's Converse stream. */
import type { GatewayEvent } from '../../model/event.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import { defined, isText, textOf } from '../_shared/fields.ts';
import { OpenBlocks } from '../_shared/open-blocks.ts';
import { spellToolId } from '../_shared/tool-ids.ts';
import {
  upstreamError,
  unusableResponse,
  truncatedResponse,
  tellsError,
} from '../_shared/upstream-error/index.ts';
import type { Frame, StreamDecoder } from '../../sdk/format.ts';
import { decodeCitation } from './citations.ts';
import { mediaKinds, mimeOf } from './parts.ts';
import { decodeUsage } from './usage.ts';
import { reasonOfStop } from './finish.ts';
import { formatName, withExtra } from './wire.ts';

const none: readonly GatewayEvent[] = [];

/** Decodes a provider's frames to events. Unknown frames become `opaque` events. */
export class ConverseStreamDecoder implements StreamDecoder {
  readonly #open = new OpenBlocks({
    format: formatName,
    stop: (index, body) => opaque('contentBlockStop', body ?? { contentBlockIndex: index }),
  });
  #started = false;
  #finished = false;

  frame({ event, data }: Frame): readonly GatewayEvent[] {
    if (data === '') return none;
    const body = parseObject(data);
    if (body === undefined) throw unusableResponse('sent an event that is not a JSON object');
    if (event === 'error' || tellsError(body)) throw upstreamError(200, data);
    return this.json(event ?? '', body);
  }

  /** Decodes a parsed frame. */
  json(event: string, body: JsonObject): readonly GatewayEvent[] {
    switch (event) {
      case 'contentBlockDelta':
        return this.#delta(body);
      case 'contentBlockStart':
        return this.#blockStart(body);
      case 'contentBlockStop': {
        const events: GatewayEvent[] = [];
        this.#open.close(indexOf(body), events, body);
        return events;
      }
      case 'messageStart':
        return this.#start();
      case 'messageStop':
        return this.#stop(body);
      case 'metadata':
        return isObject(body.usage) ? [{ type: 'usage', usage: decodeUsage(unpadded(body)) }] : none;
      default:
        // An event of a kind that is not known yet: the same format passes it on, others have no place for it.
        return event === '' || !this.#started ? none : [opaque(event, body)];
    }
  }

  end(): readonly GatewayEvent[] {
    if (!this.#finished) throw truncatedResponse();
    return none;
  }

  #start(): readonly GatewayEvent[] {
    if (this.#started) return none;
    this.#started = true;
    return [{ type: 'head', id: '', model: '' }];
  }

  #blockStart(body: JsonObject): readonly GatewayEvent[] {
    const events: GatewayEvent[] = [];
    const index = indexOf(body);
    this.#open.close(index, events);
    const start = isObject(body.start) ? body.start : {};
    if (isObject(start.toolUse)) {
      const { toolUseId, name: tool, ...rest } = start.toolUse;
      const { block } = this.#open.begin('tool', index);
      const id = isText(toolUseId) ? spellToolId(toolUseId) : '';
      events.push({ type: 'tool-start', block, choice: 0, id, name: textOf(tool), ...withExtra(rest) });
    } else if (isObject(start.image)) {
      events.push(this.#media(index, start.image.format));
    } else if (Object.keys(start).length > 0) {
      this.#open.begin('opaque', index);
      events.push(opaque('contentBlockStart', body));
    }
    return events;
  }

  #delta(body: JsonObject): readonly GatewayEvent[] {
    const { delta } = body;
    if (!isObject(delta)) throw unusableResponse('sent a piece of a block without content');
    const index = indexOf(body);
    const open = this.#open.at(index);
    if (open?.kind === 'opaque') return [opaque('contentBlockDelta', body)];
    const events: GatewayEvent[] = [];
    if (typeof delta.text === 'string') {
      const { block } = this.#open.need('text', index, events);
      events.push({ type: 'text-delta', block, choice: 0, text: delta.text });
    } else if (isObject(delta.toolUse)) {
      if (open?.kind !== 'tool') throw unusableResponse('sent a piece of a tool call without its start');
      const { input } = delta.toolUse;
      if (typeof input === 'string') events.push({ type: 'tool-delta', block: open.block, choice: 0, input });
    } else if (isObject(delta.reasoningContent)) {
      this.#think(delta.reasoningContent, index, events);
    } else if (isObject(delta.citation)) {
      const { block } = this.#open.need('text', index, events);
      events.push({ type: 'citation', block, choice: 0, citation: decodeCitation(delta.citation) });
    } else if (isObject(delta.image)) {
      if (open?.kind !== 'media') events.push(this.#media(index, undefined));
      const block = this.#open.at(index)?.block ?? 0;
      const source = isObject(delta.image.source) ? delta.image.source.bytes : undefined;
      if (typeof source === 'string') events.push({ type: 'media-delta', block, choice: 0, data: source });
    } else if (open !== undefined) {
      events.push(opaque('contentBlockDelta', body));
    }
    return events;
  }

  #think(delta: JsonObject, index: number, events: GatewayEvent[]): void {
    const open = this.#open.need('reasoning', index, events);
    if (typeof delta.text === 'string')
      events.push({ type: 'reasoning-delta', block: open.block, choice: 0, text: delta.text });
    open.signature += textOf(delta.signature);
    if (typeof delta.redactedContent === 'string')
      open.redacted = (open.redacted ?? '') + delta.redactedContent;
  }

  #media(index: number, format: JsonValue | undefined): GatewayEvent {
    const { block } = this.#open.begin('media', index);
    const mimeType = typeof format === 'string' ? mimeOf(mediaKinds.image, format) : undefined;
    return { type: 'media-start', block, choice: 0, media: 'image', ...defined({ mimeType }) };
  }

  #stop(body: JsonObject): readonly GatewayEvent[] {
    if (this.#finished) return none;
    const events: GatewayEvent[] = [];
    this.#open.closeAll(events);
    this.#finished = true;
    const { stopReason, ...rest } = unpadded(body);
    const raw = textOf(stopReason);
    const { additionalModelResponseFields: fields } = rest;
    // Some models report the matched stop sequence, if the request asks for it.
    const stopSequence = isObject(fields) ? fields.stop_sequence : undefined;
    events.push({
      type: 'finish',
      choice: 0,
      reason: reasonOfStop[raw] ?? 'other',
      ...(raw === '' ? {} : { raw, format: formatName }),
      ...(typeof stopSequence === 'string' ? { stopSequence } : {}),
      ...withExtra(rest),
    });
    return events;
  }
}

/** Providers fill events up to hide their lengths. */
function unpadded(body: JsonObject): MutableObject {
  const { p: _, ...rest } = body;
  return rest;
}

function opaque(event: string, body: JsonObject): GatewayEvent {
  return { type: 'opaque', format: formatName, value: { event, body }, choice: 0 };
}

function indexOf({ contentBlockIndex: index }: JsonObject): number {
  return typeof index === 'number' ? index : 0;
}
