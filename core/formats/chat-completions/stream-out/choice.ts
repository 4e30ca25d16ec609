/** Writes the chunks of one choice of a reply. */
import { randomUUID } from 'node:crypto';
import { objectsOf } from '../../_shared/fields.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import type { EventOf } from '../../_shared/floor.ts';
import { numberedId } from '../../_shared/tool-ids.ts';
import { writeCitation } from '../citations.ts';
import { putBack } from '../../_shared/extra.ts';
import { writeDetail } from '../reasoning/details.ts';
import { finishWriter } from '../../_openai/finish.ts';
import { MediaEncoder } from './media.ts';
import { formatName, own } from '../wire.ts';

const writeFinish = finishWriter(formatName, 'stop length tool_calls content_filter function_call');

/** Events that belong to one answer. */
export type ChoiceEvent = Extract<GatewayEvent, { readonly choice: number }>;

/** State that the encoders of all choices of a response share. */
export interface ReplyScope {
  /** The client knows the deprecated `function_call` only. */
  readonly legacy: boolean;
  readonly created: number;
  /** Ids of tool calls that were given out, and how often each was wanted: results are matched by them, so none may come twice. */
  readonly callIds: Map<string, number>;
  drop(name: string): void;
}

interface Tool {
  readonly index: number;
  readonly custom: boolean;
  spoke: boolean;
  ended: boolean;
}

/** Encodes the blocks of one choice. Tracks the open block, so that nothing is written for an unknown block. */
export class ChoiceEncoder {
  readonly #scope: ReplyScope;
  readonly #tools = new Map<number, Tool>();
  readonly #media: MediaEncoder;
  /** Text of each open reasoning after the first: its entry brings its own text, the first one's is all before. */
  readonly #reasoning = new Map<number, { readonly index: number; text: string }>();
  #reasonings = 0;
  #finished = false;

  constructor(scope: ReplyScope) {
    this.#scope = scope;
    this.#media = new MediaEncoder(scope);
  }

  get finished(): boolean {
    return this.#finished;
  }

  /** The natural end of an answer whose upstream gave none. */
  get naturalFinish(): string {
    return this.#calledWord(this.#tools.size > 0 ? 'tool_calls' : 'stop');
  }

  /** Returns the delta that an event becomes; undefined for one that puts nothing on the wire. */
  delta(event: Exclude<ChoiceEvent, EventOf<'finish'>>): JsonObject | undefined {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
      case 'refusal-end':
        return undefined;
      case 'text-delta':
        return event.text === '' && event.logprobs === undefined && event.extra === undefined
          ? undefined
          : { content: event.text };
      case 'text-end':
        return (
          event.proof && {
            reasoning_details: [writeDetail(event.proof, { index: this.#reasonings, onText: true })],
          }
        );
      case 'citation':
        return this.#citation(event);
      case 'refusal-delta':
        return event.text === '' && event.extra === undefined ? undefined : { refusal: event.text };
      case 'reasoning-start':
        this.#openReasoning(event.block);
        return undefined;
      case 'reasoning-delta':
        return this.#reasoningText(event);
      case 'reasoning-end':
        return this.#closeReasoning(event);
      case 'tool-start':
        return this.#openTool(event);
      case 'tool-delta':
        return this.#toolText(event);
      case 'tool-end':
        return this.#closeTool(event);
      case 'media-start':
        return this.#media.begin(event);
      case 'media-delta':
        return this.#media.add(event);
      case 'media-end':
        return this.#media.end(event);
      default:
        return event satisfies never;
    }
  }

  /** Returns the finish reason of the choice. */
  finish(event: EventOf<'finish'>): string {
    this.#finished = true;
    return this.#calledWord(writeFinish(event));
  }

  #citation(event: EventOf<'citation'>): JsonObject | undefined {
    const { citation } = event;
    const { $item } = own(citation.extra);
    const item = isObject($item) ? $item : writeCitation(citation);
    if (item === undefined) this.#scope.drop('citation');
    else if (citation.quote !== undefined) this.#scope.drop('citation.quote');
    return item && { annotations: [item] };
  }

  #openReasoning(block: number): { readonly index: number; text: string } {
    let state = this.#reasoning.get(block);
    if (state === undefined) {
      state = { index: this.#reasonings, text: '' };
      this.#reasonings += 1;
      this.#reasoning.set(block, state);
    }
    return state;
  }

  #reasoningText(event: EventOf<'reasoning-delta'>): JsonObject | undefined {
    const state = this.#openReasoning(event.block);
    const { text } = event;
    const { $detail, $also, $copy, $field } = own(event.extra);
    if (text === '' && event.extra === undefined) return undefined;
    if (state.index > 0) state.text += text;
    const delta: MutableObject = isObject($copy) ? { ...$copy } : {};
    if (isObject($detail))
      delta.reasoning_details = [
        { ...$detail, [typeof $detail.text === 'string' ? 'text' : 'summary']: text },
      ];
    else delta[$field === 'reasoning' ? 'reasoning' : 'reasoning_content'] = text;
    if (Array.isArray($also))
      for (const field of $also as readonly JsonValue[]) if (typeof field === 'string') delta[field] = text;
    return delta;
  }

  #closeReasoning(event: EventOf<'reasoning-end'>): JsonObject | undefined {
    const { index, text } = this.#openReasoning(event.block);
    this.#reasoning.delete(event.block);
    const { $written, $details } = own(event.extra);
    if (event.proof === undefined || $written === true) return undefined;
    const kept = objectsOf($details);
    return { reasoning_details: kept.length > 0 ? kept : [writeDetail(event.proof, { index, text })] };
  }

  #openTool(event: EventOf<'tool-start'>): JsonObject | undefined {
    if (this.#tools.has(event.block)) return undefined;
    const index = this.#tools.size;
    this.#tools.set(event.block, { index, custom: event.custom === true, spoke: false, ended: false });
    const { name } = event;
    const id = this.#freshId(event.id);
    if (this.#scope.legacy) {
      if (index > 0) this.#scope.drop('tool_calls');
      return index > 0 ? undefined : { function_call: { name, arguments: '' } };
    }
    const call: MutableObject = event.custom
      ? { index, id, type: 'custom', custom: { name, input: '' } }
      : { index, id, type: 'function', function: { name, arguments: '' } };
    putOwn(call, event, event.custom === true);
    const delta: MutableObject = { tool_calls: [call] };
    const kept = objectsOf(own(event.extra).$details);
    if (kept.length > 0) delta.reasoning_details = kept;
    else if (event.proof !== undefined && call.extra_content === undefined)
      delta.reasoning_details = [writeDetail(event.proof, { index: this.#reasonings, callId: id })];
    return delta;
  }

  #freshId(wanted: string): string {
    const { callIds } = this.#scope;
    const base = wanted === '' ? `call_${randomUUID().replaceAll('-', '').slice(0, 24)}` : wanted;
    return numberedId(base, callIds);
  }

  #toolText(event: EventOf<'tool-delta'>): JsonObject | undefined {
    const tool = this.#tools.get(event.block);
    if (tool === undefined || tool.ended || (event.input === '' && event.extra === undefined))
      return undefined;
    if (event.input !== '') tool.spoke = true;
    return this.#arguments(tool, event.input, event);
  }

  #arguments(tool: Tool, input: string, event: ChoiceEvent): JsonObject | undefined {
    const { index, custom } = tool;
    if (this.#scope.legacy) return index > 0 ? undefined : { function_call: { arguments: input } };
    const call: MutableObject = custom
      ? { index, custom: { input } }
      : { index, function: { arguments: input } };
    putOwn(call, event, custom);
    return { tool_calls: [call] };
  }

  /** Ends a call. A call without arguments gets the text of an empty object, unless a provider of this format sent none. */
  #closeTool(event: EventOf<'tool-end'>): JsonObject | undefined {
    const tool = this.#tools.get(event.block);
    if (tool === undefined || tool.ended) return undefined;
    tool.ended = true;
    if (tool.spoke || tool.custom || own(event.extra).$empty === true) return undefined;
    return this.#arguments(tool, '{}', event);
  }

  #calledWord(word: string): string {
    if (word !== 'tool_calls' && word !== 'function_call') return word;
    // Clients that read it go and look for calls.
    if (this.#tools.size === 0) return 'stop';
    return this.#scope.legacy ? 'function_call' : 'tool_calls';
  }
}

/** Writes the unknown fields of a call and of the object inside it. */
function putOwn(call: MutableObject, event: ChoiceEvent, custom: boolean): void {
  const fields = own(event.extra);
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    if (key.startsWith('call.')) call[key.slice(5)] = value;
    else if (key.startsWith('function.'))
      putBack(call, { [`${custom ? 'custom' : 'function'}.${key.slice(9)}`]: value }, ['custom', 'function']);
  }
}
