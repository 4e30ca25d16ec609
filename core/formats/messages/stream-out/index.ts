import type { GatewayError } from '../../../sdk/errors.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra, Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { WaitingBlocks } from '../../_shared/waiting-blocks.ts';
import { ArgumentsText } from '../../_shared/call-arguments.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { sealProof } from '../../_shared/proof.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import type { ReplyContext, StreamEncoder, WireFrame } from '../../../sdk/format.ts';
import { citationForClient } from '../citations.ts';
import { errorBody } from '../errors.ts';
import { headFrame, lastFrames, type Ending } from './frames.ts';
import { freshCallId } from '../ids.ts';
import { name } from '../wire.ts';
import { own, unpack } from '../extra.ts';
import { setOf } from '../../_shared/extra.ts';

type BlockEvent = Extract<GatewayEvent, { block: number }>;
type OpaqueEvent = Extract<GatewayEvent, { type: 'opaque' }>;
type Kind = 'text' | 'reasoning' | 'tool' | 'custom-tool' | 'opaque';

/** The block that has the floor: the format says one block after the other. */
interface Current {
  readonly block: number;
  readonly kind: Kind;
  /** What its first frame says beside the ordinary. */
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

const none: readonly WireFrame[] = [];

/** Turns events into the client's frames. Blocks that come interleaved wait until the one that has the floor has ended. */
export class MessagesStreamEncoder implements StreamEncoder {
  readonly #context: ReplyContext;
  readonly #lost = new Set<string>();
  readonly #waiting = new WaitingBlocks();
  readonly #ending: Ending = { usage: undefined, finish: undefined, calls: false, refused: false, last: {} };
  #out: WireFrame[] = [];
  #started = false;
  #done = false;
  /** A provider of this format answers: the inputs of its calls go on as they are, right or wrong. */
  #native = false;
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
        this.#native = event.extra?.[name] !== undefined;
        this.#start(event);
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
    for (const frame of lastFrames(this.#ending, this.#context)) this.#out.push(frame);
    return this.#flush();
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#done) return none;
    this.#done = true;
    return [{ event: 'error', json: errorBody(error, this.#context.requestId) }];
  }

  keepAlive(): readonly WireFrame[] {
    if (this.#done) return none;
    const current = this.#current;
    const empty = current?.index === undefined ? undefined : emptyDelta(current.kind);
    if (current?.index === undefined || empty === undefined)
      return [{ event: 'ping', json: { type: 'ping' } }];
    return [
      {
        event: 'content_block_delta',
        json: { type: 'content_block_delta', index: current.index, delta: empty },
      },
    ];
  }

  #flush(): readonly WireFrame[] {
    if (this.#out.length === 0) return none;
    const frames = this.#out;
    this.#out = [];
    return frames;
  }

  #start(head?: Extract<GatewayEvent, { type: 'head' }>): void {
    if (this.#started) return;
    this.#started = true;
    this.#out.push(headFrame(head, this.#ending.usage, this.#context));
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
        this.#begin(block, 'text', event.extra);
        return;
      case 'text-delta':
        if (event.logprobs !== undefined) this.#lose('logprobs');
        this.#text(block, event);
        return;
      case 'refusal-delta':
        this.#ending.refused = true;
        this.#text(block, event);
        return;
      case 'citation':
        this.#cite(block, event);
        return;
      case 'text-end':
        this.#close(event.extra);
        if (event.proof !== undefined) this.#seal(event.proof, 'text');
        return;
      case 'reasoning-start':
        this.#begin(block, 'reasoning', event.extra);
        return;
      case 'reasoning-delta':
        this.#think(block, event);
        return;
      case 'reasoning-end':
        this.#endReasoning(block, event);
        return;
      case 'tool-start':
        this.#beginTool(event);
        return;
      case 'tool-delta':
        this.#input(event);
        return;
      case 'tool-end':
      case 'refusal-end':
        this.#close(event.extra);
        return;
      case 'media-start':
      case 'media-delta':
      case 'media-end':
        this.#lose('media');
        return;
      case 'opaque':
        this.#opaqueFrame(block, event.value);
        return;
      default:
    }
  }

  /** Takes the floor. The first frame waits for the first word. */
  #begin(block: number, kind: Kind, extra: Extra | undefined): Current {
    if (this.#current !== undefined) return this.#current;
    this.#current = { block, kind, extra, index: undefined, citations: [], wrapped: false, input: undefined };
    return this.#current;
  }

  /** Says the first frame of a block, once. */
  #open(current: Current, content: JsonObject): number {
    if (current.index !== undefined) return current.index;
    const { inner, frame } = unpack(current.extra);
    const { $citations } = own(current.extra);
    const index = this.#nextIndex;
    this.#nextIndex += 1;
    current.index = index;
    const json = {
      type: 'content_block_start',
      index,
      content_block: { ...content, ...($citations === undefined ? {} : { citations: $citations }), ...inner },
      ...frame,
    };
    this.#out.push({ event: 'content_block_start', json });
    for (const citation of current.citations)
      this.#delta(index, { type: 'citations_delta', citation }, undefined);
    current.citations = [];
    return index;
  }

  #delta(index: number, delta: JsonObject, extra: Extra | undefined): void {
    if (extra === undefined) {
      this.#out.push({ event: 'content_block_delta', json: { type: 'content_block_delta', index, delta } });
      return;
    }
    const { inner, frame } = unpack(extra);
    const json = { type: 'content_block_delta', index, delta: { ...delta, ...inner }, ...frame };
    this.#out.push({ event: 'content_block_delta', json });
  }

  /** Ends the block that has the floor; one that never said anything leaves no trace. */
  #close(extra?: Extra): void {
    const current = this.#current;
    if (current === undefined) return;
    if (current.kind === 'custom-tool') this.#endWrapping(current);
    this.#endInput(current);
    this.#current = undefined;
    if (current.citations.length > 0) this.#lose('citation');
    if (current.index === undefined) return;
    const { frame } = unpack(extra);
    this.#out.push({
      event: 'content_block_stop',
      json: { type: 'content_block_stop', index: current.index, ...frame },
    });
  }

  #text(block: number, event: Extract<BlockEvent, { type: 'text-delta' | 'refusal-delta' }>): void {
    const current = this.#begin(block, 'text', undefined);
    if (current.kind !== 'text') return this.#lose(event.type);
    if (event.text === '' && current.index === undefined) return;
    const index = this.#open(current, { type: 'text', text: '' });
    this.#delta(index, { type: 'text_delta', text: event.text }, event.extra);
  }

  #cite(block: number, event: Extract<BlockEvent, { type: 'citation' }>): void {
    const current = this.#begin(block, 'text', undefined);
    const citation = citationForClient(event.citation);
    if (current.kind !== 'text' || citation === undefined) return this.#lose('citation');
    if (current.index === undefined) current.citations.push(citation);
    else this.#delta(current.index, { type: 'citations_delta', citation }, event.extra);
  }

  #think(block: number, event: Extract<BlockEvent, { type: 'reasoning-delta' }>): void {
    const current = this.#begin(block, 'reasoning', undefined);
    if (current.kind !== 'reasoning') return this.#lose(event.type);
    if (event.text === '' && current.index === undefined) return;
    const index = this.#open(current, emptyThinking);
    this.#delta(index, { type: 'thinking_delta', thinking: event.text }, event.extra);
  }

  #endReasoning(block: number, { proof, extra }: Extract<BlockEvent, { type: 'reasoning-end' }>): void {
    if (proof === undefined) return this.#close(extra);
    if (this.#current !== undefined && this.#current.kind !== 'reasoning') this.#close();
    const current = this.#begin(block, 'reasoning', undefined);
    if (proof.format === name && proof.kind === 'encrypted') {
      if (current.index !== undefined) this.#close();
      const hidden = this.#begin(block, 'reasoning', current.extra);
      this.#open(hidden, { type: 'redacted_thinking', data: proof.value });
      return this.#close(extra);
    }
    const index = this.#open(current, emptyThinking);
    const signature = proof.format === name ? proof.value : sealProof(proof);
    this.#delta(index, { type: 'signature_delta', signature }, undefined);
    this.#close(extra);
  }

  /** Puts a proof that the format has no field for into an empty thinking block of its own, for the way back. */
  #seal(proof: Proof, on: 'text' | 'tool-call'): void {
    const carrier = this.#begin(-1, 'reasoning', undefined);
    const index = this.#open(carrier, emptyThinking);
    this.#delta(index, { type: 'signature_delta', signature: sealProof(proof, on) }, undefined);
    this.#close();
  }

  #beginTool(event: Extract<BlockEvent, { type: 'tool-start' }>): void {
    if (this.#current !== undefined) return;
    if (event.proof !== undefined) this.#seal(event.proof, 'tool-call');
    const current = this.#begin(event.block, event.custom === true ? 'custom-tool' : 'tool', event.extra);
    if (current.kind === 'tool' && !this.#native) current.input = new ArgumentsText();
    this.#ending.calls = true;
    const id = event.id === '' ? freshCallId() : spellToolId(event.id);
    this.#open(current, { type: 'tool_use', id, name: event.name, input: {} });
  }

  #input(event: Extract<BlockEvent, { type: 'tool-delta' }>): void {
    const current = this.#current;
    if (current?.index === undefined) return;
    if (current.kind === 'tool') {
      const partial_json = current.input?.push(event.input) ?? event.input;
      if (partial_json === '' && event.input !== '') return;
      this.#delta(current.index, { type: 'input_json_delta', partial_json }, event.extra);
    } else if (current.kind === 'custom-tool') {
      const text = JSON.stringify(event.input).slice(1, -1);
      const partial_json = current.wrapped ? text : `${wrapping}${text}`;
      current.wrapped = true;
      this.#delta(current.index, { type: 'input_json_delta', partial_json }, undefined);
    }
  }

  #endInput({ index, input }: Current): void {
    const partial_json = input?.end() ?? '';
    if (index !== undefined && partial_json !== '')
      this.#delta(index, { type: 'input_json_delta', partial_json }, undefined);
  }

  /** Free text rides as the one member of an object. */
  #endWrapping(current: Current): void {
    if (current.index === undefined) return;
    const partial_json = current.wrapped ? '"}' : `${wrapping}"}`;
    this.#delta(current.index, { type: 'input_json_delta', partial_json }, undefined);
  }

  /** A part that only this format knows is one block, whatever it holds; another format's has no place here. */
  #takeOpaque(event: OpaqueEvent): void {
    const { value } = event;
    if (event.format !== name)
      return this.#lose(`opaque.${typeof value.type === 'string' ? value.type : event.format}`);
    switch (value.type) {
      case 'content_block_start':
        this.#opaqueCount += 1;
        this.#opaque = { block: -1 - this.#opaqueCount, index: value.index };
        return this.#route(this.#opaque.block, event);
      case 'content_block_delta':
      case 'content_block_stop': {
        const inside = this.#opaque !== undefined && this.#opaque.index === value.index;
        const block = inside ? this.#opaque?.block : this.#current?.block;
        if (inside && value.type === 'content_block_stop') this.#opaque = undefined;
        if (block !== undefined) this.#route(block, event);
        return;
      }
      case 'message_stop':
        this.#ending.last = value;
        return;
      default:
        if (typeof value.type === 'string' && !reserved.has(value.type))
          this.#out.push({ event: value.type, json: value });
    }
  }

  #opaqueFrame(block: number, value: JsonObject): void {
    if (value.type === 'content_block_start') {
      const current = this.#begin(block, 'opaque', undefined);
      if (current.block !== block || current.index !== undefined) return;
      const index = this.#nextIndex;
      this.#nextIndex += 1;
      current.index = index;
      this.#out.push({ event: 'content_block_start', json: { ...value, index } });
      return;
    }
    const current = this.#current;
    if (current === undefined) return;
    if (value.type === 'content_block_stop') {
      if (current.kind !== 'opaque' || current.index === undefined) return;
      this.#current = undefined;
      this.#out.push({ event: 'content_block_stop', json: { ...value, index: current.index } });
      return;
    }
    // The ordinary pieces have events of their own: here they would land in a block of another kind.
    if (current.kind !== 'opaque' && isOrdinary(value.delta)) return;
    const empty = current.kind === 'reasoning' ? emptyThinking : { type: 'text', text: '' };
    this.#out.push({ event: 'content_block_delta', json: { ...value, index: this.#open(current, empty) } });
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

const emptyThinking: JsonObject = { type: 'thinking', thinking: '', signature: '' };
const wrapping = '{"input":"';
const ordinaryDeltas = setOf('text_delta citations_delta thinking_delta signature_delta input_json_delta');
/** Frames that the encoder alone may say. */
const reserved = setOf('message_start message_delta message_stop error ping');

function isOrdinary(delta: unknown): boolean {
  return !isObject(delta) || typeof delta.type !== 'string' || ordinaryDeltas.has(delta.type);
}

function emptyDelta(kind: Kind): JsonObject | undefined {
  switch (kind) {
    case 'text':
      return { type: 'text_delta', text: '' };
    case 'reasoning':
      return { type: 'thinking_delta', thinking: '' };
    case 'tool':
    case 'custom-tool':
      return { type: 'input_json_delta', partial_json: '' };
    case 'opaque':
      return undefined;
  }
}
