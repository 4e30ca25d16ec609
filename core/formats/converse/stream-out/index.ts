import type { GatewayError } from '../../../sdk/errors.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra, Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { ArgumentsText } from '../../_shared/call-arguments.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { sealProof } from '../../_shared/proof.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { WaitingBlocks } from '../../_shared/waiting-blocks.ts';
import type { ReplyContext, StreamEncoder, WireFrame } from '../../../sdk/format.ts';
import { citationForClient } from '../citations.ts';
import { streamError } from '../errors.ts';
import { formatOf, mediaKinds } from '../parts.ts';
import { name, own } from '../wire.ts';
import { freshCallId, lastFrames, type Ending } from './frames.ts';

type BlockEvent = Extract<GatewayEvent, { block: number }>;
type OpaqueEvent = Extract<GatewayEvent, { type: 'opaque' }>;
type Kind = 'text' | 'reasoning' | 'tool' | 'custom-tool' | 'media' | 'opaque';

/** The block that has the floor: the format says one block after the other. */
interface Current {
  readonly block: number;
  readonly kind: Kind;
  /** Its place in the reply; undefined until its first frame is out, because no block may stay empty. */
  index: number | undefined;
  /** Sources quoted before the first word. */
  citations: JsonObject[];
  /** A free-text input was begun. */
  wrapped: boolean;
  /** What a call's input has told: it must be an object's text in the end. */
  input: ArgumentsText | undefined;
}

const none: readonly WireFrame[] = [];

/** Turns events into the client's frames. Blocks that come interleaved wait until the one that has the floor has ended. */
export class ConverseStreamEncoder implements StreamEncoder {
  readonly #context: ReplyContext;
  readonly #lost = new Set<string>();
  readonly #waiting = new WaitingBlocks();
  readonly #ending: Ending = { usage: undefined, finish: undefined, calls: false };
  #out: WireFrame[] = [];
  #started = false;
  #done = false;
  #nextIndex = 0;
  #current: Current | undefined;
  /** The block, by an invented number, and the wire index of the part that only this format knows and that is being said. */
  #opaque: { readonly block: number; readonly index: unknown } | undefined;
  #opaqueCount = 0;

  constructor(context: ReplyContext) {
    this.#context = context;
  }

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#done) return none;
    switch (event.type) {
      case 'head':
        this.#keep(event.extra);
        this.#start();
        break;
      case 'usage':
        this.#ending.usage = event.usage;
        break;
      case 'finish':
        this.#keep(event.extra);
        this.#start();
        if (event.choice === 0) this.#ending.finish = event;
        else this.#lose('choices');
        break;
      case 'opaque':
        this.#start();
        this.#takeOpaque(event);
        break;
      case 'request':
      case 'attempt':
      case 'answer':
      case 'loss':
      case 'frames':
      case 'bytes':
      case 'result':
      case 'partial-image':
      case 'message':
      case 'models':
        return none;
      default:
        this.#start();
        this.#keep(event.extra);
        if (event.choice === 0) this.#route(event.block, event);
        else this.#lose('choices');
    }
    return this.#flush();
  }

  end(): readonly WireFrame[] {
    if (this.#done) return none;
    this.#start();
    this.#close();
    while (this.#next()) this.#close();
    this.#done = true;
    return [...this.#flush(), ...lastFrames(this.#ending, this.#context)];
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#done) return none;
    this.#done = true;
    return [{ event: 'error', json: streamError(error) }];
  }

  /** The format has no event that says nothing: an empty piece does, where a block is open. */
  keepAlive(): readonly WireFrame[] {
    const current = this.#current;
    if (this.#done || current?.index === undefined) return none;
    const empty = emptyDelta(current.kind);
    return empty === undefined ? none : [deltaFrame(current.index, empty)];
  }

  #flush(): readonly WireFrame[] {
    if (this.#out.length === 0) return none;
    const frames = this.#out;
    this.#out = [];
    return frames;
  }

  #start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#out.push({ event: 'messageStart', json: { role: 'assistant' } });
  }

  /** Sends an event to its block, or lets it wait; then the waiting ones, as far as the floor is free. */
  #route(block: number, event: GatewayEvent): void {
    if (this.#current !== undefined && this.#current.block !== block) {
      this.#waiting.add(block, event);
      return;
    }
    this.#handle(block, event);
    while (this.#current === undefined && this.#next());
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
        this.#begin(block, 'text');
        return;
      case 'text-delta':
        if (event.logprobs !== undefined) this.#lose('logprobs');
        this.#text(block, event);
        return;
      case 'refusal-delta':
        this.#text(block, event);
        return;
      case 'citation':
        this.#cite(block, event);
        return;
      case 'text-end':
        this.#close();
        if (event.proof !== undefined) this.#seal(event.proof, 'text');
        return;
      case 'reasoning-start':
        this.#begin(block, 'reasoning');
        return;
      case 'reasoning-delta':
        this.#think(block, event);
        return;
      case 'reasoning-end':
        this.#endReasoning(block, event.proof);
        return;
      case 'tool-start':
        this.#beginTool(event);
        return;
      case 'tool-delta':
        this.#input(event);
        return;
      case 'tool-end':
      case 'refusal-end':
      case 'media-end':
        this.#close();
        return;
      case 'media-start':
        this.#beginMedia(event);
        return;
      case 'media-delta':
        this.#mediaPiece(event);
        return;
      case 'opaque':
        this.#opaqueFrame(block, event.value);
        return;
      default:
    }
  }

  /** Takes the floor. The first frame waits for the first word. */
  #begin(block: number, kind: Kind): Current {
    return (this.#current ??= {
      block,
      kind,
      index: undefined,
      citations: [],
      wrapped: false,
      input: undefined,
    });
  }

  /** The block's place, from its first frame on. `start` is said where the kind has a beginning of its own. */
  #open(current: Current, start?: JsonObject): number {
    if (current.index !== undefined) return current.index;
    const index = this.#nextIndex;
    this.#nextIndex += 1;
    current.index = index;
    if (start !== undefined)
      this.#out.push({ event: 'contentBlockStart', json: { contentBlockIndex: index, start } });
    return index;
  }

  #delta(index: number, delta: JsonObject): void {
    this.#out.push(deltaFrame(index, delta));
  }

  /** Ends the block that has the floor; one that never said anything leaves no trace. */
  #close(): void {
    const current = this.#current;
    if (current === undefined) return;
    if (current.kind === 'custom-tool') this.#endWrapping(current);
    this.#endInput(current);
    this.#current = undefined;
    if (current.citations.length > 0) this.#lose('citation');
    if (current.index === undefined) return;
    this.#out.push({ event: 'contentBlockStop', json: { contentBlockIndex: current.index } });
  }

  #text(block: number, event: Extract<BlockEvent, { type: 'text-delta' | 'refusal-delta' }>): void {
    const current = this.#begin(block, 'text');
    if (current.kind !== 'text') return this.#lose(event.type);
    if (event.text === '' && current.index === undefined) return;
    const index = this.#open(current);
    this.#delta(index, { text: event.text });
    for (const citation of current.citations) this.#delta(index, { citation });
    current.citations = [];
  }

  #cite(block: number, event: Extract<BlockEvent, { type: 'citation' }>): void {
    const current = this.#begin(block, 'text');
    const citation = citationForClient(event.citation);
    if (current.kind !== 'text' || citation === undefined) return this.#lose('citation');
    if (current.index === undefined) current.citations.push(citation);
    else this.#delta(current.index, { citation });
  }

  #think(block: number, event: Extract<BlockEvent, { type: 'reasoning-delta' }>): void {
    const current = this.#begin(block, 'reasoning');
    if (current.kind !== 'reasoning') return this.#lose(event.type);
    if (event.text === '' && current.index === undefined) return;
    this.#delta(this.#open(current), { reasoningContent: { text: event.text } });
  }

  #endReasoning(block: number, proof: Proof | undefined): void {
    if (proof === undefined) return this.#close();
    if (this.#current !== undefined && this.#current.kind !== 'reasoning') this.#close();
    const current = this.#begin(block, 'reasoning');
    if (proof.format === name && proof.kind === 'encrypted') {
      if (current.index !== undefined) this.#close();
      const hidden = this.#begin(block, 'reasoning');
      this.#delta(this.#open(hidden), { reasoningContent: { redactedContent: proof.value } });
      return this.#close();
    }
    const signature = proof.format === name ? proof.value : sealProof(proof);
    this.#sign(current, signature);
    this.#close();
  }

  /** Puts a proof that the format has no field for into an empty reasoning block of its own, for the way back. */
  #seal(proof: Proof, on: 'text' | 'tool-call'): void {
    this.#sign(this.#begin(-1, 'reasoning'), sealProof(proof, on));
    this.#close();
  }

  /** A signature vouches for a text, be it empty. */
  #sign(current: Current, signature: string): void {
    if (current.index === undefined) this.#delta(this.#open(current), { reasoningContent: { text: '' } });
    this.#delta(this.#open(current), { reasoningContent: { signature } });
  }

  #beginTool(event: Extract<BlockEvent, { type: 'tool-start' }>): void {
    if (this.#current !== undefined) return;
    if (event.proof !== undefined) this.#seal(event.proof, 'tool-call');
    const current = this.#begin(event.block, event.custom === true ? 'custom-tool' : 'tool');
    if (current.kind === 'tool') current.input = new ArgumentsText();
    this.#ending.calls = true;
    const toolUseId = event.id === '' ? freshCallId() : spellToolId(event.id);
    this.#open(current, { toolUse: { toolUseId, name: event.name, ...own(event.extra) } });
  }

  #input(event: Extract<BlockEvent, { type: 'tool-delta' }>): void {
    const current = this.#current;
    if (current?.index === undefined) return;
    if (current.kind === 'tool') {
      const input = current.input?.push(event.input) ?? event.input;
      if (input !== '') this.#delta(current.index, { toolUse: { input } });
    } else if (current.kind === 'custom-tool') {
      const text = JSON.stringify(event.input).slice(1, -1);
      const input = current.wrapped ? text : `${wrapping}${text}`;
      current.wrapped = true;
      this.#delta(current.index, { toolUse: { input } });
    }
  }

  #endInput({ index, input: told }: Current): void {
    const input = told?.end() ?? '';
    if (index !== undefined && input !== '') this.#delta(index, { toolUse: { input } });
  }

  /** Free text rides as the one member of an object. */
  #endWrapping({ index, wrapped }: Current): void {
    if (index !== undefined) this.#delta(index, { toolUse: { input: wrapped ? '"}' : `${wrapping}"}` } });
  }

  /** The format shows images; other media have no place in an answer. */
  #beginMedia(event: Extract<BlockEvent, { type: 'media-start' }>): void {
    if (this.#current !== undefined) return;
    const [image] = mediaKinds;
    const format = image === undefined ? undefined : formatOf(image, event.mimeType ?? 'image/png');
    if (event.media !== 'image' || format === undefined) return this.#lose('media');
    this.#open(this.#begin(event.block, 'media'), { image: { format } });
  }

  #mediaPiece({ data, transcript }: Extract<BlockEvent, { type: 'media-delta' }>): void {
    if (transcript !== undefined) this.#lose('media.transcript');
    const current = this.#current;
    if (data === undefined || current?.index === undefined || current.kind !== 'media') return;
    this.#delta(current.index, { image: { source: { bytes: data } } });
  }

  /** A part that only this format knows is one block, whatever it holds; another format's has no place here. */
  #takeOpaque(event: OpaqueEvent): void {
    const { value } = event;
    if (event.format !== name)
      return this.#lose(`opaque.${typeof value.type === 'string' ? value.type : event.format}`);
    const { event: kind, body } = value;
    if (typeof kind !== 'string' || !isObject(body)) return;
    const index = body.contentBlockIndex;
    switch (kind) {
      case 'contentBlockStart':
        this.#opaqueCount += 1;
        this.#opaque = { block: -1 - this.#opaqueCount, index };
        return this.#route(this.#opaque.block, event);
      case 'contentBlockDelta':
      case 'contentBlockStop': {
        const inside = this.#opaque !== undefined && this.#opaque.index === index;
        const block = inside ? this.#opaque?.block : this.#current?.block;
        if (inside && kind === 'contentBlockStop') this.#opaque = undefined;
        if (block !== undefined) this.#route(block, event);
        return;
      }
      default:
        this.#out.push({ event: kind, json: body });
    }
  }

  #opaqueFrame(block: number, { event, body }: JsonObject): void {
    if (typeof event !== 'string' || !isObject(body)) return;
    const current = event === 'contentBlockStart' ? this.#begin(block, 'opaque') : this.#current;
    if (current === undefined) return;
    // Text and reasoning begin with their first piece, which this may be.
    const contentBlockIndex = this.#open(current);
    if (event === 'contentBlockStop') this.#current = undefined;
    this.#out.push({ event, json: { ...body, contentBlockIndex } });
  }

  /** Reports what only another format knows. */
  #keep(extra: Extra | undefined): void {
    if (extra !== undefined) loseForeign(extra, name, undefined, (path) => this.#lose(path));
  }

  #lose(path: string): void {
    if (this.#lost.has(path)) return;
    this.#lost.add(path);
    this.#context.lose(path);
  }
}

const wrapping = '{"input":"';

function deltaFrame(contentBlockIndex: number, delta: JsonObject): WireFrame {
  return { event: 'contentBlockDelta', json: { contentBlockIndex, delta } };
}

function emptyDelta(kind: Kind): JsonObject | undefined {
  switch (kind) {
    case 'text':
      return { text: '' };
    case 'reasoning':
      return { reasoningContent: { text: '' } };
    case 'tool':
    case 'custom-tool':
      return { toolUse: { input: '' } };
    default:
      return undefined;
  }
}
