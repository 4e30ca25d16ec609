/** Writes a generateContent stream. */
import { joinBase64 } from '../../_shared/base64.ts';
import type { GatewayError } from '../../../sdk/errors.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra, Proof } from '../../../model/extra.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { joinLists } from '../../_shared/join-lists.ts';
import type { EventOf } from '../../_shared/floor.ts';
import { Losses } from '../../_shared/losses.ts';
import type { ReplyContext, StreamEncoder, WireFrame } from '../../../sdk/format.ts';
import { Choice } from './choice.ts';
import { Chunk } from './chunk.ts';
import { errorBody } from '../errors.ts';
import { writeFinish } from '../finish.ts';
import { writeGrounding } from '../citations.ts';
import { writeLogprobs } from '../logprobs.ts';
import { writeSignature } from '../reasoning.ts';
import { writeUsage } from '../usage.ts';
import { callPart, mediaPart, responseId } from './parts.ts';
import { formatName, own } from '../wire.ts';
import { objectsOf, textOf } from '../../_shared/fields.ts';

const none: readonly WireFrame[] = [];

/**
 * Events as chunks. A chunk goes out with every piece of text and every finished part; `whole` holds everything back for one last chunk,
 * which is the whole reply.
 */
export class ReplyEncoder implements StreamEncoder {
  readonly #context: ReplyContext;
  readonly #whole: boolean;
  readonly #choices = new Map<number, Choice>();
  readonly #losses: Losses;
  #id: string | undefined;
  #head: JsonObject | undefined;
  #usage: JsonObject | undefined;
  /** True after usage with any count. */
  #counted = false;
  #chunk: Chunk | undefined;
  #out: WireFrame[] = [];
  #done = false;

  constructor(context: ReplyContext, whole = false) {
    this.#context = context;
    this.#losses = new Losses(formatName, context);
    this.#whole = whole;
  }

  event(event: GatewayEvent): readonly WireFrame[] {
    if (!this.#done) this.#emit(event);
    return this.#take();
  }

  end(): readonly WireFrame[] {
    if (this.#done) return none;
    if (this.#choices.size === 0) this.#choice(0);
    for (const [index, choice] of this.#choices)
      if (!choice.finished) this.#finish({ type: 'finish', choice: index, reason: 'stop' });
    this.#flush();
    this.#done = true;
    return this.#take();
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#done) return [];
    this.#flush();
    this.#done = true;
    this.#out.push({ json: errorBody(error) });
    return this.#take();
  }

  keepAlive(): readonly WireFrame[] {
    return none;
  }

  #take(): readonly WireFrame[] {
    if (this.#out.length === 0) return none;
    const frames = this.#out;
    this.#out = [];
    return frames;
  }

  #emit(event: GatewayEvent): void {
    if ('extra' in event) this.#losses.dropForeign(event.extra);
    switch (event.type) {
      case 'head':
        if (this.#id !== undefined) return;
        this.#id = responseId(event.id);
        this.#head = own(event.extra);
        return;
      case 'usage':
        this.#usage = writeUsage(event.usage);
        this.#counted ||= event.usage.input > 0;
        return;
      case 'finish':
        return this.#finish(event);
      case 'opaque':
        return this.#opaque(event);
      case 'text-start':
      case 'refusal-start':
        this.#live(event)?.open(event.block, 'text');
        return;
      case 'reasoning-start':
        this.#live(event)?.open(event.block, 'reasoning');
        return;
      case 'tool-start':
      case 'media-start':
        this.#live(event)?.open(event.block, event.type === 'tool-start' ? 'tool' : 'media', event);
        return;
      case 'text-delta':
      case 'refusal-delta':
        return this.#text(event, 'text');
      case 'reasoning-delta':
        return this.#text(event, 'reasoning');
      case 'tool-delta':
        return this.#addInput(event);
      case 'media-delta':
        if (event.transcript !== undefined) this.#losses.drop('transcript');
        return this.#addMedia(event);
      case 'citation':
        return this.#cite(event);
      case 'text-end':
      case 'reasoning-end':
        return this.#seal(event, event.proof);
      case 'refusal-end':
        return this.#seal(event, undefined);
      case 'tool-end':
      case 'media-end':
        return this.#close(event);
      default:
    }
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index);
    if (choice === undefined) this.#choices.set(index, (choice = new Choice()));
    return choice;
  }

  /** Returns the choice of an event, unless it has finished already. */
  #live(event: { readonly choice: number }): Choice | undefined {
    const choice = this.#choice(event.choice);
    return choice.finished ? undefined : choice;
  }

  #text(
    event: EventOf<'text-delta' | 'reasoning-delta' | 'refusal-delta'>,
    kind: 'text' | 'reasoning',
  ): void {
    const block = this.#live(event)?.open(event.block, kind);
    if ((block?.kind !== 'text' && block?.kind !== 'reasoning') || event.text === '') return;
    if (block.kind === 'text') block.text += event.text;
    const chunk = this.#filling();
    const part = chunk.wordsOf(event.choice, event.block, block.kind);
    part.text = textOf(part.text) + event.text;
    const { logprobsResult: verbatim, ...fields } = own(event.extra);
    chunk.take(fields, event.choice, part);
    const tokens = event.type === 'text-delta' ? event.logprobs : undefined;
    const more = verbatim ?? (tokens === undefined ? undefined : writeLogprobs(tokens));
    if (more !== undefined) {
      const candidate = chunk.fields(event.choice);
      candidate.logprobsResult = joinLists(candidate.logprobsResult, more);
    }
    this.#flushUnlessMore(event.extra);
  }

  #addInput(event: EventOf<'tool-delta'>): void {
    const block = this.#live(event)?.blocks.get(event.block);
    if (block?.start !== undefined) block.text += event.input;
  }

  #addMedia({ choice, block: number, data }: EventOf<'media-delta'>): void {
    const block = this.#live({ choice })?.blocks.get(number);
    if (block?.start !== undefined && data !== undefined) block.data.push(data);
  }

  #cite(event: EventOf<'citation'>): void {
    const choice = this.#live(event);
    if (choice === undefined || own(event.extra).$grounding === true) return;
    const block = choice.blocks.get(event.block);
    choice.cited.push({ citation: event.citation, text: () => block?.text ?? '' });
  }

  /** Writes the proof of a text block that has ended, on its last part or on an empty one. */
  #seal(event: EventOf<'text-end' | 'reasoning-end' | 'refusal-end'>, proof: Proof | undefined): void {
    const choice = this.#live(event);
    if (choice === undefined || proof === undefined) return;
    const chunk = this.#filling();
    const kind = event.type === 'reasoning-end' ? 'reasoning' : 'text';
    const part = chunk.wordsOf(event.choice, event.block, kind);
    part.thoughtSignature = writeSignature(proof);
    const fields = own(event.extra);
    if (fields.$noText === true && part.text === '') delete part.text;
    chunk.take(fields, event.choice, part);
    this.#flushUnlessMore(event.extra);
  }

  #close(event: EventOf<'tool-end' | 'media-end'>): void {
    const choice = this.#live(event);
    const block = choice?.blocks.get(event.block);
    if (choice === undefined || block?.start === undefined) return;
    choice.blocks.delete(event.block);
    const { start } = block;
    const part =
      start.type === 'tool-start'
        ? callPart(start, block.text)
        : mediaPart(start, joinBase64(block.data), event.type === 'media-end' ? event.url : undefined);
    if (part === undefined) return;
    const chunk = this.#filling();
    chunk.add(event.choice, part);
    chunk.take(own(start.extra), undefined, part);
    chunk.take(own(event.extra), event.choice, part);
    this.#flushUnlessMore(event.extra);
  }

  #finish(event: EventOf<'finish'>): void {
    const choice = this.#live(event);
    if (choice === undefined) return;
    for (const [block, { kind }] of choice.blocks) {
      if (kind === 'tool' || kind === 'media')
        this.#close({ type: `${kind}-end`, block, choice: event.choice });
    }
    choice.finished = true;
    if (event.stopSequence !== undefined) this.#losses.drop('stopSequence');
    const ours = event.format === formatName;
    const fields = ours ? own(event.extra) : {};
    const chunk = this.#filling();
    chunk.take(fields, fields.$noCandidate === true ? undefined : event.choice);
    if (fields.$noCandidate !== true) {
      const candidate = chunk.fields(event.choice);
      if (fields.$noReason !== true)
        candidate.finishReason = ours && event.raw !== undefined ? event.raw : writeFinish(event.reason);
      if (fields.$content !== undefined) candidate.content = fields.$content;
    }
    choice.bare = ours;
    if (choice.cited.length > 0)
      chunk.fields(event.choice).groundingMetadata ??= writeGrounding(choice.cited);
    // Usage may arrive after the finish. The last chunk waits for it, because every chunk needs a part and usage has none.
    if (ours && this.#counted) this.#flushUnlessMore(event.extra);
  }

  #opaque(event: EventOf<'opaque'>): void {
    if (!this.#losses.isOwn(event)) return;
    const { $more: more, ...value } = event.value;
    const chunk = this.#filling();
    const { choice = 0 } = event;
    if (Array.isArray(value.candidates)) this.#carry(chunk, value);
    else if (this.#live({ choice }) === undefined) return;
    else chunk.add(choice, value);
    if (more !== true) this.#flushUnlessMore(undefined);
  }

  /** Fields of a chunk that held nothing else. */
  #carry(chunk: Chunk, value: JsonObject): void {
    const { candidates, ...fields } = value;
    chunk.put(fields);
    for (const candidate of objectsOf(candidates)) {
      const { index, $content: content, ...rest } = candidate;
      if (typeof index !== 'number' || this.#live({ choice: index }) === undefined) continue;
      Object.assign(chunk.fields(index), rest, content === undefined ? {} : { content });
    }
  }

  #filling(): Chunk {
    this.#chunk ??= new Chunk();
    return this.#chunk;
  }

  #flushUnlessMore(extra: Extra | undefined): void {
    if (!this.#whole && own(extra).$more !== true) this.#flush();
  }

  #flush(): void {
    if (this.#chunk === undefined && this.#usage === undefined) return;
    const json = this.#filling().json((choice) => this.#emptyContent(choice));
    this.#chunk = undefined;
    for (const [key, value] of Object.entries(this.#head ?? {}))
      if (!key.startsWith('$')) json[key] ??= value;
    this.#head = undefined;
    if (this.#usage !== undefined) json.usageMetadata = this.#usage;
    this.#usage = undefined;
    json.modelVersion = this.#context.model;
    this.#id ??= responseId('');
    json.responseId = this.#id;
    this.#out.push({ json });
  }

  /** Clients drop a whole answer from their history when one of its chunks has no part; the provider's own last chunk may have none. */
  #emptyContent(index: number): JsonValue | undefined {
    const choice = this.#choice(index);
    if (!choice.finished || choice.bare) return undefined;
    return { parts: this.#whole ? [] : [{ text: '' }], role: 'model' };
  }
}
