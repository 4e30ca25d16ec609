/** Reads the parts of one candidate in a stream. */
import { randomUUID } from 'node:crypto';
import type { Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { BlockCounter, endOf } from '../../_shared/blocks.ts';
import { brokenArguments } from '../../../json/arguments.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import type { ChunkEvents } from './events.ts';
import { dataField } from '../request-in/parts.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { replyText } from '../errors.ts';
import { mediaType } from '../parts.ts';
import { PartialArguments } from './arguments.ts';
import { blockLimit, levels, formatName, leftovers } from '../wire.ts';
import { readSignature } from '../reasoning.ts';
import { unusableResponse } from '../../_shared/upstream-error/index.ts';
import { defined, isText, objectsOf, setOf, textOf } from '../../_shared/fields.ts';

interface OpenBlock {
  readonly kind: 'text' | 'reasoning';
  readonly block: number;
  text: string;
  /** The chunk that last added to it: two parts of one chunk are two blocks, parts of two chunks are one. */
  chunk: number;
}

/** A call whose arguments are still coming. */
interface OpenCall {
  readonly block: number;
  /** Its id, where the provider gave one. */
  readonly id: string | undefined;
  readonly arguments: PartialArguments;
  /** Further members of its later parts, beside the arguments. */
  readonly extras: Leftovers;
}

/** Finish reason of a candidate, held until the next chunk, because older providers send `STOP` in every chunk. */
export interface HeldFinish {
  readonly raw: string;
  readonly fields: { [key: string]: JsonValue | undefined };
  readonly chunk: number;
}

/** State of one of several answers. */
export class Candidate {
  readonly index: number;
  /** Its position among the candidates of the response, from 0. */
  readonly position: number;
  open: OpenBlock | undefined;
  call: OpenCall | undefined;
  called = false;
  finished = false;
  held: HeldFinish | undefined;
  readonly cited = new Set<string>();

  constructor(index: number, position: number) {
    this.index = index;
    this.position = position;
  }
}

/** Turns the parts of chunks into events of blocks. */
export class PartReader {
  readonly #events: ChunkEvents;
  readonly #blocks = new BlockCounter();

  constructor(events: ChunkEvents) {
    this.#events = events;
  }

  /** Reads a part. `chunk`: number of the chunk that holds it. */
  read(candidate: Candidate, part: JsonObject, chunk: number): void {
    const { functionCall, inlineData, fileData } = part;
    const field = dataField(part);
    if (field === 'text') this.#text(candidate, part, chunk);
    else if (field === 'functionCall' && isObject(functionCall)) this.#call(candidate, part, functionCall);
    else if (field === 'inlineData' && part.thought !== true && isObject(inlineData))
      this.#media(candidate, part, field, inlineData);
    else if (field === 'fileData' && isObject(fileData) && isWebFile(fileData))
      this.#media(candidate, part, field, fileData);
    else {
      this.close(candidate);
      this.#opaque(candidate, part);
    }
  }

  /** Ends the open text of a candidate. */
  close(candidate: Candidate): void {
    const { open } = candidate;
    if (open === undefined) return;
    candidate.open = undefined;
    this.#events.push(endOf(open.kind, open.block, candidate.index));
  }

  #opaque(candidate: Candidate, part: JsonObject): void {
    this.#events.produce({ type: 'opaque', format: formatName, value: part, choice: candidate.index });
  }

  #text(candidate: Candidate, part: JsonObject, chunk: number): void {
    const text = textOf(part.text);
    const proof = proofOf(part);
    const extras = leftovers().take(part, textFields, levels.part);
    if (part.thought === false) extras.put(`${levels.part}thought`, false);
    if (text === '' && proof === undefined) {
      if (extras.extra().extra !== undefined) this.#opaque(candidate, part);
      return;
    }
    const choice = candidate.index;
    const open = this.#openText(candidate, part.thought === true ? 'reasoning' : 'text', chunk);
    const { block, kind } = open;
    if (text !== '') {
      if (kind === 'text') open.text += text;
      this.#events.produce({ type: `${kind}-delta`, block, choice, text, ...extras.extra() });
    } else if (part.text === undefined) extras.put('$noText', true);
    if (proof === undefined) return;
    candidate.open = undefined;
    const extra = text === '' ? extras.extra() : {};
    this.#events.produce({ type: `${kind}-end`, block, choice, proof, ...extra });
  }

  /** Returns the open block of this kind, or a new one. */
  #openText(candidate: Candidate, kind: OpenBlock['kind'], chunk: number): OpenBlock {
    const { open } = candidate;
    if (open?.kind === kind && open.chunk !== chunk) {
      open.chunk = chunk;
      return open;
    }
    this.close(candidate);
    const begun: OpenBlock = { kind, block: this.#block(), text: '', chunk };
    candidate.open = begun;
    this.#events.push({ type: `${kind}-start`, block: begun.block, choice: candidate.index });
    return begun;
  }

  /** Ends the call whose arguments were still coming. `cut`: nothing vouches for their end, so that they stay as they broke off. */
  endCall(candidate: Candidate, cut = false): void {
    const { call } = candidate;
    if (call === undefined) return;
    candidate.call = undefined;
    const address = { block: call.block, choice: candidate.index };
    const input = cut ? '' : call.arguments.end();
    if (input !== '') this.#events.push({ type: 'tool-delta', ...address, input });
    this.#events.produce({ type: 'tool-end', ...address, ...call.extras.extra() });
  }

  /** Reads a part of a call: all of it, its beginning, or its continuation. */
  #call(candidate: Candidate, part: JsonObject, call: JsonObject): void {
    const id = isText(call.id) ? call.id : undefined;
    const begins = isText(call.name);
    const { call: open } = candidate;
    const isSame = begins
      ? id !== undefined && id === open?.id
      : id === undefined || open?.id === undefined || id === open.id;
    if (open !== undefined && isSame) {
      open.extras.take(part, partOfCall, levels.part);
      open.extras.take(call, callFields, 'functionCall.');
      this.#more(candidate, open, call);
    } else if (begins) this.#begin(candidate, part, call, id);
    // The end of a call may be sent twice.
    else if (Object.keys(call).length > 0) {
      this.close(candidate);
      this.#opaque(candidate, part);
    }
  }

  #begin(candidate: Candidate, part: JsonObject, call: JsonObject, stated: string | undefined): void {
    this.close(candidate);
    this.endCall(candidate);
    candidate.called = true;
    const extras = leftovers()
      .take(part, callPartFields, levels.part)
      .take(call, callFields, 'functionCall.');
    const id =
      stated === undefined ? `call_${randomUUID().replaceAll('-', '').slice(0, 24)}` : spellToolId(stated);
    if (stated === undefined) extras.put('$noId', true);
    else if (stated !== id) extras.put('$id', stated);
    const streamed = call.willContinue === true || call.partialArgs !== undefined;
    const input =
      streamed || call.args === undefined || call.args === null
        ? ''
        : (brokenArguments(call.args) ?? replyText(call.args));
    if (input === '' && !streamed) extras.put('$noArgs', true);
    const proved = defined({ proof: proofOf(part) });
    const address = { block: this.#block(), choice: candidate.index };
    const name = String(call.name);
    this.#events.push({ type: 'tool-start', ...address, id, name, ...proved, ...extras.extra() });
    if (streamed) {
      const { block } = address;
      const begun = { block, id: stated, arguments: new PartialArguments(), extras: leftovers() };
      candidate.call = begun;
      this.#more(candidate, begun, call);
      return;
    }
    if (input !== '') this.#events.push({ type: 'tool-delta', ...address, input });
    this.#events.produce({ type: 'tool-end', ...address });
  }

  /** Decodes arguments of a running call. The call ends with the first part that is not marked to continue. */
  #more(candidate: Candidate, { block, arguments: args }: OpenCall, call: JsonObject): void {
    const partials = objectsOf(call.partialArgs);
    let input = isObject(call.args) ? args.addObject(call.args) : '';
    for (const partial of partials) input += args.add(partial);
    if (input !== '') this.#events.push({ type: 'tool-delta', block, choice: candidate.index, input });
    if (call.willContinue !== true) this.endCall(candidate);
  }

  #media(candidate: Candidate, part: JsonObject, key: 'inlineData' | 'fileData', wire: JsonObject): void {
    this.close(candidate);
    const extras = leftovers().take(part, mediaPartFields[key], levels.part);
    extras.take(wire, mediaFields[key], `${key}.`);
    const mimeType = typeof wire.mimeType === 'string' ? wire.mimeType : undefined;
    const address = { block: this.#block(), choice: candidate.index };
    const media = mediaType(mimeType);
    this.#events.push({
      type: 'media-start',
      ...address,
      media,
      ...defined({ mimeType }),
      ...extras.extra(),
    });
    const isInline = key === 'inlineData';
    if (isInline) this.#events.push({ type: 'media-delta', ...address, data: textOf(wire.data) });
    this.#events.produce({
      type: 'media-end',
      ...address,
      ...(isInline ? {} : { url: String(wire.fileUri) }),
    });
  }

  #block(): number {
    const block = this.#blocks.next();
    if (block < blockLimit) return block;
    throw unusableResponse('sent a response with too many parts');
  }
}

const textFields = setOf('text thought thoughtSignature');
const callPartFields = setOf('functionCall thoughtSignature');
const callFields = setOf('id name args partialArgs willContinue');
/** A proof that comes after its call has begun has no other place. */
const partOfCall = setOf('functionCall');
const mediaPartFields = { inlineData: setOf('inlineData'), fileData: setOf('fileData') };
const mediaFields = { inlineData: setOf('mimeType data'), fileData: setOf('mimeType fileUri') };

function proofOf(part: JsonObject): Proof | undefined {
  const { thoughtSignature } = part;
  return isText(thoughtSignature) ? readSignature(thoughtSignature) : undefined;
}

function isWebFile(file: JsonObject): boolean {
  return typeof file.fileUri === 'string' && /^https?:\/\//i.test(file.fileUri);
}
