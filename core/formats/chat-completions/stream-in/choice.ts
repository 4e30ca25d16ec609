/** Decodes the deltas of one choice in a chat completions stream into text, reasoning, refusals, tool calls and media. */
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra, Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { readLogprobs } from '../../_openai/logprobs.ts';
import { endOf } from '../../_shared/blocks.ts';
import { readCitation } from '../citations.ts';
import { ToolCalls } from './calls.ts';
import { MediaDecoder } from './media.ts';
import { readDetail, type Detail } from '../reasoning/details.ts';
import { formatName, withExtra } from '../wire.ts';
import { readFinish } from '../../_openai/finish.ts';
import { InlineThinking } from '../../_openai/inline-thinking.ts';
import { defined, isText, objectsOf, textOf, setOf } from '../../_shared/fields.ts';

/** The fields of a delta that become events. */
export const deltaFields = setOf(
  'role content refusal reasoning_content reasoning reasoning_details tool_calls function_call audio annotations images',
);

type Kind = 'text' | 'refusal' | 'reasoning';

/** Turns the deltas of one answer into blocks: one open at a time, save tool calls, which providers interleave. */
export class ChoiceDecoder {
  readonly #choice: number;
  readonly #nextBlock: () => number;
  readonly #tools: ToolCalls;
  readonly #thinking: InlineThinking | undefined;
  readonly #media: MediaDecoder;
  readonly #reasons: ModelTraits['finishReasons'];
  #open: { readonly kind: Kind; readonly block: number } | undefined;
  /** The `index` of the `reasoning_details` entry that the open reasoning came from. */
  #detailIndex: JsonValue | undefined;
  /** Text of the open reasoning from plain fields: an entry with its signature may repeat it. */
  #thought = '';
  #finished = false;
  #strays: JsonObject[] = [];

  constructor(choice: number, traits: ModelTraits, nextBlock: () => number) {
    this.#choice = choice;
    this.#nextBlock = nextBlock;
    this.#tools = new ToolCalls(choice, nextBlock);
    this.#media = new MediaDecoder(choice, nextBlock, (events) => this.#leave(events));
    this.#thinking = traits.inlineThinking === true ? new InlineThinking() : undefined;
    this.#reasons = traits.finishReasons;
  }

  get finished(): boolean {
    return this.#finished;
  }

  /** Returns the entries of the last delta's `reasoning_details` that have no neutral meaning. */
  takeStrays(): readonly JsonObject[] {
    const strays = this.#strays;
    if (strays.length > 0) this.#strays = [];
    return strays;
  }

  /** Returns the events of one delta, in the order reasoning, text, refusal, calls, whatever the order of its fields. */
  delta(delta: JsonObject, logprobs: JsonValue | undefined): GatewayEvent[] {
    const events: GatewayEvent[] = [];
    this.#reasoning(delta, events);
    this.#content(delta.content, logprobs, events);
    if (isText(delta.refusal)) this.#run({ kind: 'refusal', text: delta.refusal }, events);
    if (Array.isArray(delta.annotations)) this.#annotations(delta.annotations, events);
    if (isObject(delta.audio)) this.#media.audio(delta.audio, events);
    if (Array.isArray(delta.images)) this.#media.images(delta.images, events);
    if (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0) {
      this.#leave(events);
      this.#tools.fragments(delta.tool_calls as readonly JsonValue[], events);
    }
    if (isObject(delta.function_call)) {
      this.#leave(events);
      this.#tools.legacy(delta.function_call, events);
    }
    return events;
  }

  /** Ends the answer. Some providers send "stop" after tool calls, which is read as `tool_calls`. */
  finish(word: string, events: GatewayEvent[]): void {
    this.#finished = true;
    for (const run of this.#thinking?.flush() ?? []) this.#run(run, events);
    this.#leave(events);
    this.#tools.close(events);
    this.#media.close(events);
    for (const entry of this.#tools.leftDetails()) this.#proofBlock(readDetail(entry), entry, events);
    const reason = readFinish(this.#reasons?.[word] ?? word);
    const called = this.#tools.any && (reason === 'stop' || reason === 'other');
    events.push({
      type: 'finish',
      choice: this.#choice,
      reason: called ? 'tool-calls' : reason,
      raw: called ? 'tool_calls' : word,
      format: formatName,
    });
  }

  #enter(kind: Kind, events: GatewayEvent[]): number {
    if (this.#open?.kind === kind) return this.#open.block;
    this.#leave(events);
    // A block after tool calls begins when all of them have ended.
    if (this.#tools.open) this.#tools.close(events);
    const block = this.#nextBlock();
    this.#open = { kind, block };
    events.push({ type: `${kind}-start`, block, choice: this.#choice });
    return block;
  }

  #leave(events: GatewayEvent[], proof?: Proof, extra?: Extra): void {
    if (this.#open === undefined) return;
    const { kind, block } = this.#open;
    this.#open = undefined;
    this.#detailIndex = undefined;
    this.#thought = '';
    const choice = this.#choice;
    if (kind === 'reasoning' && proof !== undefined)
      events.push({ type: 'reasoning-end', block, choice, proof, ...defined({ extra }) });
    else events.push(endOf(kind, block, choice));
  }

  #run(run: { readonly kind: Kind; readonly text: string }, events: GatewayEvent[]): void {
    const block = this.#enter(run.kind, events);
    events.push({ type: `${run.kind}-delta`, block, choice: this.#choice, text: run.text });
  }

  #content(content: JsonValue | undefined, logprobs: JsonValue | undefined, events: GatewayEvent[]): void {
    if (Array.isArray(content)) {
      for (const part of content as readonly JsonValue[]) this.#part(part, events);
      return;
    }
    if (!isText(content)) return;
    if (this.#thinking !== undefined) {
      for (const run of this.#thinking.push(content)) this.#run(run, events);
      return;
    }
    const block = this.#enter('text', events);
    const tokens = isObject(logprobs) ? readLogprobs(logprobs.content) : [];
    events.push({
      type: 'text-delta',
      block,
      choice: this.#choice,
      text: content,
      ...(tokens.length === 0 ? {} : { logprobs: tokens }),
    });
  }

  /** Reads a part of content. Mistral writes content as parts, with the reasoning among them. */
  #part(part: JsonValue, events: GatewayEvent[]): void {
    if (!isObject(part)) return;
    if (isText(part.text)) this.#run({ kind: 'text', text: part.text }, events);
    if (isText(part.thinking)) this.#run({ kind: 'reasoning', text: part.thinking }, events);
    if (!Array.isArray(part.thinking)) return;
    for (const inner of objectsOf(part.thinking))
      if (isText(inner.text)) this.#run({ kind: 'reasoning', text: inner.text }, events);
  }

  /** Reads reasoning from `reasoning_details`, else `reasoning_content`, else `reasoning`; the others are copies. */
  #reasoning(delta: JsonObject, events: GatewayEvent[]): void {
    const entries = objectsOf(delta.reasoning_details);
    if (entries.length > 0) {
      this.#details(entries, delta, events);
      return;
    }
    const field = isText(delta.reasoning_content) ? 'reasoning_content' : 'reasoning';
    const text = delta[field];
    if (!isText(text)) return;
    const block = this.#enter('reasoning', events);
    this.#thought += text;
    const own: MutableObject = {};
    if (field === 'reasoning') own.$field = 'reasoning';
    else if (isText(delta.reasoning))
      own[delta.reasoning === text ? '$also' : '$copy'] =
        delta.reasoning === text ? ['reasoning'] : { reasoning: delta.reasoning };
    events.push({ type: 'reasoning-delta', block, choice: this.#choice, text, ...withExtra(own) });
  }

  #details(entries: readonly JsonObject[], delta: JsonObject, events: GatewayEvent[]): void {
    const read = entries.map(readDetail);
    const whole = read.map((detail) => detail.text).join('');
    const copies = ['reasoning_content', 'reasoning'].filter((field) => isText(delta[field]));
    // If the entries have no text, the plain string is the text. The first of several entries may omit its text, which is then in the plain
    // string with that of all others.
    const longer =
      whole === '' || read[0]?.text === '' ? copies.filter((field) => isLonger(delta[field], whole)) : [];
    if (longer.length > 0)
      this.#reasoning(
        pick(delta, longer, (text) => text.slice(0, text.length - whole.length)),
        events,
      );
    const same = whole === '' ? [] : [...copies.filter((field) => delta[field] === whole), ...longer];
    const marks: JsonObject = same.length > 0 ? { $also: same } : {};
    const others = whole === '' ? [] : copies.filter((field) => !same.includes(field));
    const first = others.length > 0 ? { ...marks, $copy: pick(delta, others, (text) => text) } : marks;
    const called = new Set(objectsOf(delta.tool_calls).map(({ id }) => id));
    entries.forEach((entry, index) => {
      const detail = read[index];
      if (detail === undefined || this.#isOfCall(detail, entry, called)) return;
      this.#entry(detail, entry, index === 0 ? first : marks, events);
    });
  }

  /** Returns true for a signature of a call in this chunk, or, from Google, of a later call. Such a signature waits for its call. */
  #isOfCall(detail: Detail, entry: JsonObject, called: ReadonlySet<JsonValue | undefined>): boolean {
    if (detail.proof === undefined || detail.callId === undefined || detail.on === 'text') return false;
    const named = called.has(detail.callId);
    if (!named && detail.proof.format !== 'generate-content' && detail.on !== 'tool-call') return false;
    return this.#tools.keepDetail(detail.callId, entry);
  }

  #entry(detail: Detail, entry: JsonObject, marks: JsonObject, events: GatewayEvent[]): void {
    if (detail.text === '') {
      if (detail.proof === undefined) this.#strays.push(entry);
      else this.#proofBlock(detail, entry, events);
      return;
    }
    if (detail.proof !== undefined && this.#open?.kind === 'reasoning' && this.#thought === detail.text) {
      this.#leave(events, detail.proof, { [formatName]: { $details: [entry] } });
      return;
    }
    const { index } = entry;
    if (this.#detailIndex !== undefined && index !== undefined && this.#detailIndex !== index)
      this.#leave(events);
    const block = this.#enter('reasoning', events);
    this.#detailIndex = index;
    // The text is kept in the event alone, so that a plugin which edits the event edits the entry too.
    const $detail = { ...entry, [typeof entry.text === 'string' ? 'text' : 'summary']: '' };
    const own = withExtra({ ...marks, $detail });
    events.push({ type: 'reasoning-delta', block, choice: this.#choice, text: detail.text, ...own });
    // `$detail` holds the signature; the end event still needs it as its proof.
    if (detail.proof !== undefined) this.#leave(events, detail.proof, { [formatName]: { $written: true } });
  }

  /** Closes the open reasoning with its signature. An encrypted payload is a reasoning block of its own. */
  #proofBlock(detail: Detail, entry: JsonObject, events: GatewayEvent[]): void {
    const { proof } = detail;
    if (proof === undefined) return;
    if (proof.kind === 'encrypted' || this.#open?.kind !== 'reasoning') {
      this.#leave(events);
      this.#enter('reasoning', events);
    }
    this.#leave(events, proof, { [formatName]: { $details: [entry] } });
  }

  #annotations(list: readonly unknown[], events: GatewayEvent[]): void {
    for (const item of list) {
      if (!isObject(item)) continue;
      const block = this.#enter('text', events);
      events.push({ type: 'citation', block, choice: this.#choice, citation: readCitation(item) });
    }
  }
}

function isLonger(value: JsonValue | undefined, ending: string): boolean {
  return isText(value) && value.length > ending.length && value.endsWith(ending);
}

/** Returns the texts of some fields, changed. */
function pick(object: JsonObject, fields: readonly string[], change: (text: string) => string): JsonObject {
  return Object.fromEntries(fields.map((field) => [field, change(textOf(object[field]))]));
}
