import { isDeepStrictEqual } from 'node:util';
import type { GatewayError } from '../../../sdk/errors.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import { parseJson } from '../../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { upstreamError, truncatedResponse, tellsError } from '../../_shared/upstream-error/index.ts';
import type { Frame, StreamDecoder } from '../../../sdk/format.ts';
import { ChunkEvents } from './events.ts';
import { readFinish, reasonIn } from '../finish.ts';
import { garbage, replyText } from '../errors.ts';
import { readGrounding } from '../citations.ts';
import { readLogprobs } from '../logprobs.ts';
import {
  candidateFields,
  chunkFields,
  levels,
  formatName,
  replySigns,
  leftovers,
  withExtra,
} from '../wire.ts';
import { Candidate, PartReader, type HeldFinish } from './parts.ts';
import { SearchCounter } from '../services.ts';
import { readUsage } from '../usage.ts';
import { given } from '../../_shared/check.ts';
import { fieldsBeside, objectsOf, textOf } from '../../_shared/fields.ts';

/** A decoder of one reply. `whole`: the one chunk is the complete reply, so that no missing finish means a cut. */
export class ReplyDecoder implements StreamDecoder {
  readonly #whole: boolean;
  readonly #events = new ChunkEvents();
  readonly #parts = new PartReader(this.#events);
  readonly #candidates = new Map<number, Candidate>();
  /** Candidates whose finish is held, in the order of their finish. */
  readonly #holding = new Set<Candidate>();
  readonly #searches = new SearchCounter();
  #chunk = 0;
  /** The first chunk. */
  #first: JsonObject = {};

  constructor(whole = false) {
    this.#whole = whole;
  }

  frame({ data, event }: Frame): readonly GatewayEvent[] {
    if (event === 'error') throw upstreamError(200, data);
    if (data === '[DONE]' || data.trim() === '') return [];
    const value = parse(data);
    if (isObject(value)) return this.chunk(value);
    if (!Array.isArray(value)) throw garbage();
    return value.flatMap((chunk) => {
      if (!isObject(chunk)) throw garbage();
      return this.chunk(chunk);
    });
  }

  /** Decodes a chunk, which has the structure of a whole response with some of its parts. */
  chunk(chunk: JsonObject): readonly GatewayEvent[] {
    if (tellsError(chunk)) throw failure(chunk);
    // A chunk before the response without any of its data does not begin the response.
    if (this.#chunk === 0 && !replySigns.some((key) => chunk[key] !== undefined)) return [];
    this.#chunk += 1;
    const candidates = objectsOf(chunk.candidates);
    this.#settleHeld(candidates);
    if (this.#chunk === 1) {
      this.#first = chunk;
      this.#head(chunk);
    }
    this.#searches.read(chunk);
    if (isObject(chunk.usageMetadata))
      this.#events.push({ type: 'usage', usage: this.#searches.counted(readUsage(chunk.usageMetadata)) });
    candidates.forEach((candidate, position) => this.#candidate(candidate, position));
    if (candidates.length === 0) this.#blocked(chunk);
    if (this.#chunk > 1) this.#chunkExtras(chunk);
    this.#events.markTogether(this.#heldNow() !== undefined);
    return this.#events.take();
  }

  end(): readonly GatewayEvent[] {
    if (this.#whole) this.#completeWhole();
    const candidates = [...this.#candidates.values()];
    if (candidates.length === 0 || candidates.some(({ held, finished }) => held === undefined && !finished))
      throw truncatedResponse();
    this.#finishHeld();
    return this.#events.take();
  }

  #head(chunk: JsonObject): void {
    const extras = leftovers().take(chunk, chunkFields);
    const created = Math.floor(Date.parse(textOf(chunk.createTime)) / 1000);
    this.#events.push({
      type: 'head',
      id: textOf(chunk.responseId),
      model: textOf(chunk.modelVersion),
      ...(Number.isFinite(created) ? { created } : {}),
      ...extras.extra(),
    });
  }

  #at(index: number): Candidate {
    let candidate = this.#candidates.get(index);
    if (candidate === undefined) {
      candidate = new Candidate(index, this.#candidates.size);
      this.#candidates.set(index, candidate);
    }
    return candidate;
  }

  #candidate(wire: JsonObject, position: number): void {
    const candidate = this.#at(indexOf(wire, position));
    if (candidate.finished) return;
    const before = this.#events.produced;
    const begun = this.#events.length;
    const calling = candidate.call !== undefined;
    for (const part of partsOf(wire)) this.#parts.read(candidate, part, this.#chunk);
    const silent = this.#events.length === begun && !calling;
    const fields = fieldsBeside(wire, candidateFields);
    const logprobs = readLogprobs(wire.logprobsResult);
    if (logprobs !== undefined && this.#events.attachLogprobs(logprobs, wire.logprobsResult, before))
      delete fields.logprobsResult;
    this.#citations(candidate, wire.groundingMetadata);
    if (silent && wire.content !== undefined) fields.$content = wire.content;
    const reason = reasonIn(wire);
    if (reason !== undefined) {
      this.#hold(candidate, { raw: reason, fields, chunk: this.#chunk });
      return;
    }
    if (given(wire.finishReason) && wire.finishReason !== '') fields.finishReason = wire.finishReason;
    // An empty content matters only if it is the only data of an end.
    if (Object.keys(fields).every((key) => key === '$content') || this.#events.attach(fields, before)) return;
    const value = { candidates: [{ ...fields, index: candidate.index }] };
    this.#events.produce({ type: 'opaque', format: formatName, value });
  }

  /** Sources for clients of other formats; the metadata itself goes on verbatim. */
  #citations(candidate: Candidate, grounding: JsonValue | undefined): void {
    const { open } = candidate;
    if (open?.kind !== 'text' || grounding === undefined) return;
    for (const citation of readGrounding(grounding, open.text)) {
      const key = JSON.stringify(citation);
      if (candidate.cited.has(key)) continue;
      candidate.cited.add(key);
      const extra = { [formatName]: { $grounding: true } };
      this.#events.push({ type: 'citation', block: open.block, choice: candidate.index, citation, extra });
    }
  }

  /** Handles a refused prompt, which has no candidates. */
  #blocked(chunk: JsonObject): void {
    const feedback = isObject(chunk.promptFeedback) ? chunk.promptFeedback : undefined;
    if (typeof feedback?.blockReason !== 'string' || this.#candidates.size > 0) return;
    const fields = { $noCandidate: true };
    this.#hold(this.#at(0), { raw: feedback.blockReason, fields, chunk: this.#chunk });
  }

  /** Fields of a later chunk that have no event; those of the first are the head's. */
  #chunkExtras(chunk: JsonObject): void {
    const fields = fieldsBeside(chunk, chunkFields);
    if (Object.keys(fields).length === 0) return;
    const leveled: MutableObject = {};
    for (const key of Object.keys(fields)) leveled[levels.chunk + key] = fields[key];
    const held = this.#heldNow();
    if (held !== undefined) Object.assign(held.fields, leveled);
    else if (!this.#events.attach(leveled, 0)) this.#carryChunk(fields);
  }

  /** Reports fields of a chunk that no event can carry. For a part of a tool call, fields that all chunks repeat are already reported. */
  #carryChunk(fields: JsonObject): void {
    const isPiece = this.#events.produced === 0;
    const kept = Object.keys(fields).filter(
      (key) => !isPiece || !isDeepStrictEqual(fields[key], this.#first[key]),
    );
    if (kept.length === 0) return;
    const value = { candidates: [], ...Object.fromEntries(kept.map((key) => [key, fields[key]])) };
    this.#events.produce({ type: 'opaque', format: formatName, value });
  }

  #hold(candidate: Candidate, finish: HeldFinish): void {
    candidate.held = finish;
    this.#holding.add(candidate);
  }

  #heldNow(): HeldFinish | undefined {
    let first: Candidate | undefined;
    for (const candidate of this.#holding) {
      if (candidate.held?.chunk !== this.#chunk) continue;
      if (first === undefined || candidate.position < first.position) first = candidate;
    }
    return first?.held;
  }

  /** Emits a held finish, unless its candidate goes on after all. */
  #settleHeld(candidates: readonly JsonObject[]): void {
    candidates.forEach((wire, position) => {
      const candidate = this.#candidates.get(indexOf(wire, position));
      if (candidate?.held === undefined || partsOf(wire).length === 0) return;
      candidate.held = undefined;
      this.#holding.delete(candidate);
    });
    this.#finishHeld();
    this.#events.settle();
  }

  #finishHeld(): void {
    const ready = [...this.#holding].toSorted((one, other) => one.position - other.position);
    this.#holding.clear();
    ready.forEach((candidate, position) => {
      const { held } = candidate;
      if (held === undefined) return;
      candidate.held = undefined;
      candidate.finished = true;
      this.#parts.close(candidate);
      const { fields, raw } = held;
      this.#parts.endCall(candidate, raw !== 'STOP' && fields.$noReason !== true);
      if (position < ready.length - 1) fields.$more = true;
      this.#events.push({
        type: 'finish',
        choice: candidate.index,
        reason: reasonOf(held, candidate),
        ...(fields.$noReason === true ? {} : { raw }),
        format: formatName,
        ...withExtra(fields),
      });
    });
  }

  /** Completes a non-streamed response, also without a finish reason. */
  #completeWhole(): void {
    const chunk = this.#chunk;
    if (this.#candidates.size === 0)
      this.#hold(this.#at(0), { raw: '', fields: { $noCandidate: true, $noReason: true }, chunk });
    for (const candidate of this.#candidates.values())
      if (candidate.held === undefined)
        this.#hold(candidate, { raw: '', fields: { $noReason: true }, chunk });
  }
}

function reasonOf(held: HeldFinish, candidate: Candidate): ReturnType<typeof readFinish> {
  if (held.fields.$noCandidate === true) return held.raw === '' ? 'other' : 'content-filter';
  if (held.fields.$noReason === true) return candidate.called ? 'tool-calls' : 'stop';
  return readFinish(held.raw, candidate.called);
}

function indexOf(candidate: JsonObject, position: number): number {
  const { index } = candidate;
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : position;
}

function partsOf(candidate: JsonObject): readonly JsonObject[] {
  const parts = isObject(candidate.content) ? candidate.content.parts : undefined;
  return objectsOf(parts);
}

function parse(data: string): unknown {
  try {
    return parseJson(data);
  } catch (cause) {
    throw garbage(cause);
  }
}

/** Returns the error of an error object in place of a chunk. */
function failure(chunk: JsonObject): GatewayError {
  const code = isObject(chunk.error) ? Number(chunk.error.code) : Number.NaN;
  return upstreamError(code >= 400 && code < 600 ? code : 200, replyText(chunk));
}
