/** Streams whose blocks have numbers, each with a start, pieces and an end. */
import type { ReplyContext, WireFrame } from '../../sdk/format.ts';
import type { HeadEvent } from '../../model/event.ts';
import type { Extra, Proof } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';
import type { BlockKind, BlockWords, OpenBlock } from './block-words.ts';
import { CallInput } from './call-input.ts';
import { isText } from './fields.ts';
import { FloorEncoder, type EventOf, type EncodedEvent } from './floor.ts';
import { sealProof } from './proof.ts';
import { spellToolId } from './tool-ids.ts';

const none: readonly WireFrame[] = [];

/** Turns events into the frames of a format whose blocks have numbers, each with a start, pieces and an end. */
export abstract class BlockEncoder extends FloorEncoder {
  protected current: OpenBlock | undefined;
  /** The model declined in words. */
  protected refused = false;
  /** The proof of the text before, of another format, until the next block begins. */
  #textProof: Proof | undefined;
  readonly #words: BlockWords;
  #out: WireFrame[] = [];
  #calls = false;
  /** A provider of this format answers: the inputs of its calls go on as they are, right or wrong. */
  #native = false;
  #indices = 0;
  /** Block number (generated) and wire index of the current part that only this format has. */
  #opaque: { readonly block: number; readonly index: unknown } | undefined;
  #opaqueCount = 0;

  constructor(words: BlockWords, context: ReplyContext) {
    super(words.format, context);
    this.#words = words;
  }

  /** Says that a block begins, where the format has a frame for that. */
  protected abstract emitStart(index: number, current: OpenBlock, content: JsonObject | undefined): void;
  /** Says a piece of a block. */
  protected abstract emitDelta(index: number, delta: JsonObject, extra?: Extra): void;
  /** Says that a block has ended. */
  protected abstract emitStop(index: number, extra: Extra | undefined): void;
  /** Returns the content of the first frame of a tool call. */
  protected abstract call(id: string, event: EventOf<'tool-start'>): JsonObject;
  /** Says reasoning that only its provider can read. */
  protected abstract hide(current: OpenBlock, value: string): void;
  /** Says the signature of a reasoning, which may have no text. */
  protected abstract sign(current: OpenBlock, signature: string): void;
  /** Says of a part that only this format knows whether it begins or ends a block, stands in one, or in none. */
  protected abstract locate(value: JsonObject): {
    readonly part: 'start' | 'delta' | 'stop' | 'none';
    readonly index: unknown;
  };
  /** Says a part that stands in no block. */
  protected abstract emitApart(value: JsonObject): void;
  /** Says a part of a block that only this format knows. */
  protected abstract emitOpaque(block: number, value: JsonObject): void;
  /** Says that the stream lives, where the format has a frame for that and no block is open that has an empty piece. */
  protected emitKeepAlive(): void {}

  protected override emitHead(head: HeadEvent | undefined): void {
    this.#native = head?.extra?.[this.#words.format] !== undefined;
  }

  protected get floor(): number | undefined {
    return this.current?.block;
  }

  protected endFloor(): void {
    this.close();
  }

  protected override ping(): void {
    const { index, kind } = this.current ?? {};
    const { text, thinking, input } = this.#words;
    const pieces = { text, reasoning: thinking, tool: input, media: undefined, opaque: undefined };
    const piece = kind === undefined ? undefined : pieces[kind];
    if (index === undefined || piece === undefined) this.emitKeepAlive();
    else this.emitDelta(index, piece(''));
  }

  protected emit(event: string, json: JsonObject): void {
    this.#out.push({ event, json });
  }

  protected takeFrames(): readonly WireFrame[] {
    if (this.#out.length === 0) return none;
    const frames = this.#out;
    this.#out = [];
    return frames;
  }

  /** Returns the stop reason of the format. */
  protected stopReason(): string {
    const { finish } = this;
    const calls = this.#calls;
    const { format, stops } = this.#words;
    if (finish?.format === format && finish.raw !== undefined) return finish.raw;
    const reason = stops[finish?.reason ?? 'stop'];
    if (reason === stops.stop && calls) return stops['tool-calls'];
    return reason === stops['tool-calls'] && !calls ? stops.stop : reason;
  }

  /** Takes the floor. The first frame waits for the first word. */
  protected take(block: number, kind: BlockKind, extra?: Extra): OpenBlock {
    return (this.current ??= { block, kind, extra, index: undefined, citations: [], input: undefined });
  }

  /** Returns the block's place, from its first frame on. */
  protected open(current: OpenBlock, content?: JsonObject): number {
    if (current.index !== undefined) return current.index;
    const index = this.assignIndex(current);
    const { starts } = this.#words;
    this.emitStart(index, current, content ?? starts?.[current.kind === 'reasoning' ? 'reasoning' : 'text']);
    return index;
  }

  /** Returns the same, without a frame. */
  protected assignIndex(current: OpenBlock): number {
    if (current.index !== undefined) return current.index;
    this.#sealText();
    this.#indices += 1;
    return (current.index = this.#indices - 1);
  }

  /** Says the sources that were quoted before the first word. */
  protected quote(index: number, current: OpenBlock): void {
    for (const citation of current.citations) this.emitDelta(index, this.#words.citation(citation));
    current.citations = [];
  }

  /** Ends the current block. A block without content writes nothing. */
  protected close(extra?: Extra): void {
    const { current } = this;
    if (current === undefined) return;
    this.#endInput(current);
    this.current = undefined;
    if (current.citations.length > 0) this.losses.drop('citation');
    if (current.index !== undefined) this.emitStop(current.index, extra);
  }

  /** Reports media as dropped, because most such formats have none in an answer. */
  protected media(_event: EventOf<'media-start' | 'media-delta' | 'media-end'>): void {
    this.losses.drop('media');
  }

  protected emitEvent(block: number, event: EncodedEvent): void {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
        this.take(block, 'text', event.extra);
        return;
      case 'text-delta':
        if (event.logprobs !== undefined) this.losses.drop('logprobs');
        return this.#text(block, event);
      case 'refusal-delta':
        this.refused = true;
        return this.#text(block, event);
      case 'citation':
        return this.#cite(block, event);
      case 'text-end':
        this.close(event.extra);
        if (event.proof !== undefined) {
          this.#sealText();
          this.#textProof = event.proof;
        }
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
        return this.emitOpaque(block, event.value);
    }
  }

  #text(block: number, event: EventOf<'text-delta' | 'refusal-delta'>): void {
    const current = this.take(block, 'text');
    if (current.kind !== 'text') return this.losses.drop(event.type);
    if (event.text === '' && current.index === undefined) return;
    const index = this.open(current);
    this.emitDelta(index, this.#words.text(event.text), event.extra);
    if (current.citations.length > 0) this.quote(index, current);
  }

  #cite(block: number, event: EventOf<'citation'>): void {
    const current = this.take(block, 'text');
    const citation = this.#words.citationOf(event.citation);
    if (current.kind !== 'text' || citation === undefined) return this.losses.drop('citation');
    if (current.index === undefined) current.citations.push(citation);
    else this.emitDelta(current.index, this.#words.citation(citation), event.extra);
  }

  #think(block: number, event: EventOf<'reasoning-delta'>): void {
    const current = this.take(block, 'reasoning');
    if (current.kind !== 'reasoning') return this.losses.drop(event.type);
    if (event.text === '' && current.index === undefined) return;
    this.emitDelta(this.open(current), this.#words.thinking(event.text), event.extra);
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

  /**
   * Says the proof of a text before the block that follows. At the end of a reply the proof is lost, because clients take the last block for
   * the answer (`claude -p` prints nothing for reasoning). Gemini requires the proofs of calls only:
   * https://ai.google.dev/gemini-api/docs/thought-signatures
   */
  #sealText(): void {
    const { current } = this;
    const proof = this.#textProof;
    if (proof === undefined) return;
    this.#textProof = undefined;
    this.current = undefined;
    this.#seal(proof, 'text');
    this.current = current;
  }

  protected override ended(): void {
    if (this.#textProof !== undefined) this.losses.drop('text.proof');
  }

  #beginTool(event: EventOf<'tool-start'>): void {
    if (this.current !== undefined) return;
    if (event.proof !== undefined) this.#seal(event.proof, 'tool-call');
    this.#calls = true;
    const current = this.take(event.block, 'tool', event.extra);
    current.input = new CallInput(event.custom === true ? 'free-text' : this.#native ? 'verbatim' : 'object');
    const id = event.id === '' ? this.#words.freshCallId() : spellToolId(event.id);
    this.open(current, this.call(id, event));
  }

  #input({ input, extra }: EventOf<'tool-delta'>): void {
    const { current } = this;
    if (current?.index === undefined) return;
    const json = current.input?.push(input);
    if (json !== undefined && (json !== '' || this.#words.emptyInputs === true))
      this.emitDelta(current.index, this.#words.input(json), extra);
  }

  #endInput({ index, input }: OpenBlock): void {
    const json = index === undefined ? undefined : input?.end();
    if (index !== undefined && isText(json)) this.emitDelta(index, this.#words.input(json));
  }

  /** Writes a part that only this format knows as one block, whatever it holds. */
  protected takeOpaque(value: JsonObject, event: EventOf<'opaque'>): void {
    const { part, index } = this.locate(value);
    if (part === 'none') return this.emitApart(value);
    if (part === 'start') {
      this.#opaqueCount += 1;
      this.#opaque = { block: -1 - this.#opaqueCount, index };
      return this.route(this.#opaque.block, event);
    }
    const inside = this.#opaque !== undefined && this.#opaque.index === index;
    const block = inside ? this.#opaque?.block : this.current?.block;
    if (inside && part === 'stop') this.#opaque = undefined;
    if (block !== undefined) this.route(block, event);
  }
}
