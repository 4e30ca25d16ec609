import type { GatewayError } from '../../sdk/errors.ts';
import type { ReplyContext, StreamEncoder, WireFrame } from '../../sdk/format.ts';
import type { Citation } from '../../model/chat.ts';
import type { FinishReason, GatewayEvent, HeadEvent } from '../../model/event.ts';
import type { Extra, Proof } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { isReplyEvent } from './blocks.ts';
import { ArgumentsText } from './call-arguments.ts';
import { loseForeignReply } from './foreign.ts';
import { sealProof } from './proof.ts';
import { spellToolId } from './tool-ids.ts';
import { WaitingBlocks } from './waiting-blocks.ts';

/** An event of one of these kinds. */
export type EventOf<Type extends GatewayEvent['type']> = Extract<GatewayEvent, { type: Type }>;
type Kind = 'text' | 'reasoning' | 'tool' | 'custom-tool' | 'media' | 'opaque';

/** The block that has the floor: such formats say one block after the other. */
export interface OpenBlock {
  readonly block: number;
  readonly kind: Kind;
  /** What only some format knows of its start. */
  readonly extra: Extra | undefined;
  /** Its place in the reply; undefined until its first frame is out, because no block may stay empty. */
  index: number | undefined;
  /** Sources quoted before the first word. */
  citations: JsonObject[];
  /** A free-text input was begun. */
  wrapped: boolean;
  /** What a call's input has told: it must be an object's text in the end. */
  input: ArgumentsText | undefined;
}

/** What the last frames of a reply say, gathered while it lasts. */
interface Ending {
  usage: Usage | undefined;
  finish: EventOf<'finish'> | undefined;
  /** A tool was called. */
  calls: boolean;
  /** The model declined in words. */
  refused: boolean;
}

/** How a format spells the pieces of its blocks. */
export interface BlockWords {
  readonly format: string;
  readonly text: (text: string) => JsonObject;
  readonly thinking: (text: string) => JsonObject;
  readonly input: (json: string) => JsonObject;
  readonly citation: (citation: JsonObject) => JsonObject;
  /** A source in the format's words; undefined for one that it has no place for. */
  readonly citationOf: (citation: Citation) => JsonObject | undefined;
  /** An empty piece of an input is said, too. */
  readonly emptyInputs?: true;
  /** An id for a call whose provider gave none. */
  readonly freshCallId: () => string;
  /** Neutral reason → stop reason. */
  readonly stops: Readonly<Record<FinishReason, string>>;
  /** What the first frame of a text or of reasoning holds; absent where those begin with their first piece. */
  readonly starts?: Readonly<Record<'text' | 'reasoning', JsonObject>>;
}

const none: readonly WireFrame[] = [];
const wrapping = '{"input":"';

/**
 * Turns events into the frames of a format that says one block after the other. Blocks that come interleaved wait until the one that has
 * the floor has ended. What the frames look like is for the format to say.
 */
export abstract class BlockEncoder implements StreamEncoder {
  protected readonly context: ReplyContext;
  protected readonly ending: Ending = { usage: undefined, finish: undefined, calls: false, refused: false };
  protected current: OpenBlock | undefined;
  readonly #words: BlockWords;
  readonly #lost = new Set<string>();
  readonly #waiting = new WaitingBlocks();
  #out: WireFrame[] = [];
  #started = false;
  #done = false;
  /** A provider of this format answers: the inputs of its calls go on as they are, right or wrong. */
  #native = false;
  #indices = 0;
  /** The block, by an invented number, and the wire index of the part that only this format knows and that is being said. */
  #opaque: { readonly block: number; readonly index: unknown } | undefined;
  #opaqueCount = 0;

  constructor(words: BlockWords, context: ReplyContext) {
    this.#words = words;
    this.context = context;
  }

  /** Says what a reply begins with. */
  protected abstract sayHead(head: HeadEvent | undefined): void;
  /** Says that a block begins, where the format has a frame for that. */
  protected abstract sayStart(index: number, current: OpenBlock, content: JsonObject | undefined): void;
  /** Says a piece of a block. */
  protected abstract sayDelta(index: number, delta: JsonObject, extra?: Extra): void;
  /** Says that a block has ended. */
  protected abstract sayStop(index: number, extra: Extra | undefined): void;
  /** Says what a reply ends with. */
  protected abstract sayEnd(): void;
  /** What the first frame of a call holds. */
  protected abstract call(id: string, event: EventOf<'tool-start'>): JsonObject;
  /** Says reasoning that only its provider can read. */
  protected abstract hide(current: OpenBlock, value: string): void;
  /** Says the signature of a reasoning, which may have no text. */
  protected abstract sign(current: OpenBlock, signature: string): void;
  /** Says of a part that only this format knows whether it begins or ends a block, stands in one, or in none. */
  protected abstract placeOf(value: JsonObject): {
    readonly part: 'start' | 'delta' | 'stop' | 'none';
    readonly index: unknown;
  };
  /** Says a part that stands in no block. */
  protected abstract sayApart(value: JsonObject): void;
  /** Says a part of a block that only this format knows. */
  protected abstract sayOpaque(block: number, value: JsonObject): void;
  protected abstract errorFrame(error: GatewayError): WireFrame;

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#done || !isReplyEvent(event)) return none;
    switch (event.type) {
      case 'head':
        this.#keep(event.extra);
        this.#native = event.extra?.[this.#words.format] !== undefined;
        this.#start(event);
        break;
      case 'usage':
        this.ending.usage = event.usage;
        break;
      case 'finish':
        this.#keep(event.extra);
        this.#start();
        if (event.choice === 0) this.ending.finish = event;
        else this.lose('choices');
        break;
      case 'opaque':
        this.#start();
        this.#takeOpaque(event);
        break;
      default:
        this.#start();
        this.#keep(event.extra);
        if (event.choice === 0) this.#route(event.block, event);
        else this.lose('choices');
    }
    return this.#flush();
  }

  end(): readonly WireFrame[] {
    if (this.#done) return none;
    this.#start();
    this.close();
    while (this.#next()) this.close();
    this.#done = true;
    this.sayEnd();
    return this.#flush();
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#done) return none;
    this.#done = true;
    return [this.errorFrame(error)];
  }

  /** An empty piece, where a block is open that has one; what else the format has, if anything. */
  keepAlive(): readonly WireFrame[] {
    if (this.#done) return none;
    const { index, kind } = this.current ?? {};
    const { text, thinking, input } = this.#words;
    const empty = {
      text,
      reasoning: thinking,
      tool: input,
      'custom-tool': input,
      media: undefined,
      opaque: undefined,
    };
    const say = index === undefined || kind === undefined ? undefined : empty[kind];
    if (index === undefined || say === undefined) this.ping();
    else this.sayDelta(index, say(''));
    return this.#flush();
  }

  /** Says that the stream lives, where the format has a frame for that. */
  protected ping(): void {}

  protected say(event: string, json: JsonObject): void {
    this.#out.push({ event, json });
  }

  /** Reports a loss once. */
  protected lose(path: string): void {
    if (this.#lost.has(path)) return;
    this.#lost.add(path);
    this.context.lose(path);
  }

  /** Why the answer ended, in the format's words. */
  protected stopReason(): string {
    const { finish, calls } = this.ending;
    const { format, stops } = this.#words;
    if (finish?.format === format && finish.raw !== undefined) return finish.raw;
    const reason = stops[finish?.reason ?? 'stop'];
    if (reason === stops.stop && calls) return stops['tool-calls'];
    return reason === stops['tool-calls'] && !calls ? stops.stop : reason;
  }

  /** Takes the floor. The first frame waits for the first word. */
  protected take(block: number, kind: Kind, extra?: Extra): OpenBlock {
    return (this.current ??= {
      block,
      kind,
      extra,
      index: undefined,
      citations: [],
      wrapped: false,
      input: undefined,
    });
  }

  /** The block's place, from its first frame on. */
  protected open(current: OpenBlock, content?: JsonObject): number {
    if (current.index !== undefined) return current.index;
    const index = this.place(current);
    const { starts } = this.#words;
    this.sayStart(index, current, content ?? starts?.[current.kind === 'reasoning' ? 'reasoning' : 'text']);
    return index;
  }

  /** The same, without a frame. */
  protected place(current: OpenBlock): number {
    if (current.index !== undefined) return current.index;
    this.#indices += 1;
    return (current.index = this.#indices - 1);
  }

  /** Says the sources that were quoted before the first word. */
  protected quote(index: number, current: OpenBlock): void {
    for (const citation of current.citations) this.sayDelta(index, this.#words.citation(citation));
    current.citations = [];
  }

  /** Ends the block that has the floor; one that never said anything leaves no trace. */
  protected close(extra?: Extra): void {
    const { current } = this;
    if (current === undefined) return;
    this.#endInput(current);
    this.current = undefined;
    if (current.citations.length > 0) this.lose('citation');
    if (current.index !== undefined) this.sayStop(current.index, extra);
  }

  /** Most such formats have no media in an answer. */
  protected media(_event: EventOf<'media-start' | 'media-delta' | 'media-end'>): void {
    this.lose('media');
  }

  #flush(): readonly WireFrame[] {
    if (this.#out.length === 0) return none;
    const frames = this.#out;
    this.#out = [];
    return frames;
  }

  #start(head?: HeadEvent): void {
    if (this.#started) return;
    this.#started = true;
    this.sayHead(head);
  }

  /** Sends an event to its block, or lets it wait; then the waiting ones, as far as the floor is free. */
  #route(block: number, event: GatewayEvent): void {
    if (this.current !== undefined && this.current.block !== block) {
      this.#waiting.add(block, event);
      return;
    }
    this.#handle(block, event);
    while (this.current === undefined && this.#next());
  }

  /** Gives the floor to the block that waits longest; false when none does. */
  #next(): boolean {
    const next = this.#waiting.take();
    if (next === undefined) return false;
    for (const event of next.events) this.#handle(next.block, event);
    return true;
  }

  #handle(block: number, event: GatewayEvent): void {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
        this.take(block, 'text', event.extra);
        return;
      case 'text-delta':
        if (event.logprobs !== undefined) this.lose('logprobs');
        return this.#text(block, event);
      case 'refusal-delta':
        this.ending.refused = true;
        return this.#text(block, event);
      case 'citation':
        return this.#cite(block, event);
      case 'text-end':
        this.close(event.extra);
        if (event.proof !== undefined) this.#seal(event.proof, 'text');
        return;
      case 'reasoning-start':
        this.take(block, 'reasoning', event.extra);
        return;
      case 'reasoning-delta':
        return this.#think(block, event);
      case 'reasoning-end':
        return this.#endReasoning(block, event);
      case 'tool-start':
        return this.#beginTool(event);
      case 'tool-delta':
        return this.#input(event);
      case 'tool-end':
      case 'refusal-end':
        return this.close(event.extra);
      case 'media-start':
      case 'media-delta':
      case 'media-end':
        return this.media(event);
      case 'opaque':
        return this.sayOpaque(block, event.value);
      default:
    }
  }

  #text(block: number, event: EventOf<'text-delta' | 'refusal-delta'>): void {
    const current = this.take(block, 'text');
    if (current.kind !== 'text') return this.lose(event.type);
    if (event.text === '' && current.index === undefined) return;
    const index = this.open(current);
    this.sayDelta(index, this.#words.text(event.text), event.extra);
    if (current.citations.length > 0) this.quote(index, current);
  }

  #cite(block: number, event: EventOf<'citation'>): void {
    const current = this.take(block, 'text');
    const citation = this.#words.citationOf(event.citation);
    if (current.kind !== 'text' || citation === undefined) return this.lose('citation');
    if (current.index === undefined) current.citations.push(citation);
    else this.sayDelta(current.index, this.#words.citation(citation), event.extra);
  }

  #think(block: number, event: EventOf<'reasoning-delta'>): void {
    const current = this.take(block, 'reasoning');
    if (current.kind !== 'reasoning') return this.lose(event.type);
    if (event.text === '' && current.index === undefined) return;
    this.sayDelta(this.open(current), this.#words.thinking(event.text), event.extra);
  }

  #endReasoning(block: number, { proof, extra }: EventOf<'reasoning-end'>): void {
    if (proof === undefined) return this.close(extra);
    if (this.current !== undefined && this.current.kind !== 'reasoning') this.close();
    const current = this.take(block, 'reasoning');
    const own = proof.format === this.#words.format;
    if (own && proof.kind === 'encrypted') {
      if (current.index !== undefined) this.close();
      this.hide(this.take(block, 'reasoning', current.extra), proof.value);
    } else this.sign(current, own ? proof.value : sealProof(proof));
    this.close(extra);
  }

  /** Puts a proof that the format has no field for into an empty reasoning block of its own, for the way back. */
  #seal(proof: Proof, on: 'text' | 'tool-call'): void {
    this.sign(this.take(-1, 'reasoning'), sealProof(proof, on));
    this.close();
  }

  #beginTool(event: EventOf<'tool-start'>): void {
    if (this.current !== undefined) return;
    if (event.proof !== undefined) this.#seal(event.proof, 'tool-call');
    const current = this.take(event.block, event.custom === true ? 'custom-tool' : 'tool', event.extra);
    if (current.kind === 'tool' && !this.#native) current.input = new ArgumentsText();
    this.ending.calls = true;
    const id = event.id === '' ? this.#words.freshCallId() : spellToolId(event.id);
    this.open(current, this.call(id, event));
  }

  /** Free text rides as the one member of an object. */
  #input(event: EventOf<'tool-delta'>): void {
    const { current } = this;
    if (current?.index === undefined) return;
    if (current.kind === 'tool') {
      const json = current.input?.push(event.input) ?? event.input;
      const says = json !== '' || (event.input === '' && this.#words.emptyInputs === true);
      if (says) this.sayDelta(current.index, this.#words.input(json), event.extra);
    } else if (current.kind === 'custom-tool') {
      const text = JSON.stringify(event.input).slice(1, -1);
      this.sayDelta(current.index, this.#words.input(current.wrapped ? text : `${wrapping}${text}`));
      current.wrapped = true;
    }
  }

  #endInput({ kind, index, input, wrapped }: OpenBlock): void {
    if (index === undefined) return;
    const json = kind === 'custom-tool' ? `${wrapped ? '' : wrapping}"}` : (input?.end() ?? '');
    if (json !== '') this.sayDelta(index, this.#words.input(json));
  }

  /** A part that only this format knows is one block, whatever it holds; another format's has no place here. */
  #takeOpaque(event: EventOf<'opaque'>): void {
    const { format, value } = event;
    if (format !== this.#words.format)
      return this.lose(`opaque.${typeof value.type === 'string' ? value.type : format}`);
    const { part, index } = this.placeOf(value);
    if (part === 'none') return this.sayApart(value);
    if (part === 'start') {
      this.#opaqueCount += 1;
      this.#opaque = { block: -1 - this.#opaqueCount, index };
      return this.#route(this.#opaque.block, event);
    }
    const inside = this.#opaque !== undefined && this.#opaque.index === index;
    const block = inside ? this.#opaque?.block : this.current?.block;
    if (inside && part === 'stop') this.#opaque = undefined;
    if (block !== undefined) this.#route(block, event);
  }

  /** Reports what only another format knows. */
  #keep(extra: Extra | undefined): void {
    if (extra !== undefined) loseForeignReply(extra, this.#words.format, (path) => this.lose(path));
  }
}
