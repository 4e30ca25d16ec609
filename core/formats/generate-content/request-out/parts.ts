import type {
  Block,
  MediaBlock,
  ReasoningBlock,
  Source,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
} from '../../../model/chat.ts';
import type { Proof } from '../../../model/extra.ts';
import { argumentsObject } from '../../_shared/call-arguments.ts';
import { officialType } from '../../_shared/data-url.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../../model/json.ts';
import type { Encoding } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { writeResponse } from '../tools.ts';
import { typeOfAddress, wantsBytes, writeDetail } from '../parts.ts';
import { formatName, own } from '../wire.ts';
import { refuseContent } from '../../_shared/refuse.ts';

/** A part, and whether a proof of another vendor was taken off it. */
export interface EncodedPart {
  readonly part: MutableObject;
  readonly unproved?: boolean;
}

/** A block of a message as parts: usually one, none for what is dropped. Throws 400 for content that cannot be carried. */
export function encodeBlock(block: Block, encoding: Encoding): readonly EncodedPart[] {
  const { target } = encoding;
  loseForeign(block.extra, formatName, block.at, target.lose);
  if (block.cache !== undefined) target.lose(`${block.at}.cache`);
  switch (block.type) {
    case 'text':
      return encodeText(block, encoding);
    case 'refusal':
      // The words go on as plain text: that they decline is lost.
      target.lose(block.at ?? 'refusal');
      return block.text === '' ? [] : [{ part: { text: block.text } }];
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return encodeMedia(block, encoding).map((part) => ({ part }));
    case 'reasoning':
      return encodeReasoning(block, encoding);
    case 'tool-call':
      return [encodeCall(block, encoding)];
    case 'tool-result':
      return encodeResult(block, encoding).map((part) => ({ part }));
    case 'opaque':
      if (block.format === formatName) return [{ part: { ...block.value } }];
      refuseContent(block, `a part of the ${block.format} format`, formatName, encoding.target);
      return [];
  }
}

function isOwn(proof: Proof | undefined): proof is Proof {
  return proof?.format === formatName;
}

/** Puts our own proof where it belongs; a foreign one is reported and never sent. */
function sign(part: MutableObject, block: TextBlock | ToolCallBlock, { target }: Encoding): boolean {
  if (block.proof === undefined) return false;
  if (isOwn(block.proof)) {
    part.thoughtSignature = block.proof.value;
    return false;
  }
  target.lose(`${block.at}.proof`);
  return true;
}

function encodeText(block: TextBlock, encoding: Encoding): readonly EncodedPart[] {
  if (block.citations !== undefined) encoding.target.lose(`${block.at}.citations`);
  if (!encoding.native && block.text === '' && !isOwn(block.proof)) return [];
  const fields = own(block.extra);
  const part: MutableObject = fields.$noText === true && block.text === '' ? {} : { text: block.text };
  const unproved = sign(part, block, encoding);
  putBack(part, fields);
  return [{ part, unproved }];
}

/** Thoughts are sent only when this format's provider thought them; a native client's own are its affair. */
function encodeReasoning(block: ReasoningBlock, { native, target }: Encoding): readonly EncodedPart[] {
  const ours = isOwn(block.proof) || (native && block.proof === undefined);
  if (!ours) {
    target.lose(block.at ?? 'reasoning');
    return [];
  }
  const fields = own(block.extra);
  const part: MutableObject = fields.$noText === true && block.text === '' ? {} : { text: block.text };
  part.thought = true;
  if (block.proof !== undefined) part.thoughtSignature = block.proof.value;
  putBack(part, fields);
  return [{ part }];
}

function encodeMedia(block: MediaBlock, encoding: Encoding): readonly MutableObject[] {
  const part = encodeSource(block, encoding);
  if (part === undefined) return [];
  if (block.detail !== undefined) writeResolution(part, block, block.detail, encoding);
  putBack(part, own(block.extra), ['inlineData', 'fileData']);
  return [part];
}

function encodeSource(block: MediaBlock, encoding: Encoding): MutableObject | undefined {
  const { source } = block;
  const { native, target } = encoding;
  const shown = native && block.name !== undefined ? { displayName: block.name } : {};
  if (!native && block.name !== undefined) target.lose(`${block.at}.name`);
  switch (source.kind) {
    case 'data': {
      const mimeType = native ? source.mimeType : officialType(source.mimeType);
      return { inlineData: { mimeType, data: source.data, ...shown } };
    }
    case 'url': {
      if (!native && wantsBytes(block, target.traits))
        return refuseContent(
          block,
          `${block.type === 'image' ? 'an image' : 'a file'} by URL`,
          formatName,
          encoding.target,
        );
      const mimeType = native ? source.mimeType : typeOf(block, source);
      return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: source.url, ...shown } };
    }
    case 'file': {
      if (source.format !== formatName)
        return refuseContent(block, `a file kept by another provider`, formatName, encoding.target);
      const { mimeType } = source;
      return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: source.id, ...shown } };
    }
  }
}

function typeOf(block: MediaBlock, { url, mimeType }: Source & { kind: 'url' }): string | undefined {
  return mimeType === undefined ? guessType(block, url) : officialType(mimeType);
}

/** The provider wants a type for addresses too; JPEG is the likeliest image. */
function guessType(block: MediaBlock, url: string): string | undefined {
  const suggested = typeOfAddress(url);
  if (suggested !== undefined) return suggested;
  return block.type === 'image' ? 'image/jpeg' : undefined;
}

/** Models with thinking budgets (2.5) have no resolution for a single part. `auto` says nothing. */
function writeResolution(
  part: MutableObject,
  block: MediaBlock,
  detail: string,
  { native, target }: Encoding,
): void {
  const resolution =
    native || target.traits.reasoning === undefined || target.traits.reasoning === 'level'
      ? writeDetail(detail)
      : undefined;
  if (resolution !== undefined) part.mediaResolution = resolution;
  else if (detail !== 'auto') target.lose(`${block.at}.detail`);
}

function encodeCall(block: ToolCallBlock, encoding: Encoding): EncodedPart {
  const fields = own(block.extra);
  const call: MutableObject = {};
  if (fields.$noId !== true) call.id = block.id;
  call.name = encoding.toolName(block.name);
  if (block.input !== '' || fields.$noArgs !== true)
    call.args = block.custom === true ? { input: block.input } : argumentsObject(block.input);
  const part: MutableObject = { functionCall: call };
  const unproved = sign(part, block, encoding);
  putBack(part, fields, ['functionCall']);
  return { part, unproved };
}

function encodeResult(block: ToolResultBlock, encoding: Encoding): readonly MutableObject[] {
  const fields = own(block.extra);
  const result: MutableObject = {};
  if (typeof fields.$id === 'string') result.id = fields.$id;
  else if (fields.$noId !== true) result.id = block.id;
  result.name = encoding.toolName(block.name ?? encoding.calledName(block.id));
  const { text, media } = splitContent(block, encoding);
  if (fields.$noResponse !== true) result.response = writeResponse(text, block.failed === true, fields.$key);
  const parts = takesMediaResults(encoding) ? media : [];
  if (parts.length > 0 || fields.$noParts === true) result.parts = parts;
  const part: MutableObject = { functionResponse: result };
  putBack(part, fields, ['functionResponse']);
  return parts.length === media.length ? [part] : [part, ...media];
}

/** Models with thinking budgets and older ones take no media in results: it follows in the same turn. */
function takesMediaResults({ native, target }: Encoding): boolean {
  return native || target.traits.reasoning === undefined || target.traits.reasoning === 'level';
}

function splitContent(
  block: ToolResultBlock,
  encoding: Encoding,
): { readonly text: string; readonly media: readonly MutableObject[] } {
  const texts: string[] = [];
  const media: MutableObject[] = [];
  for (const piece of block.content) {
    if (piece.type === 'text') {
      loseForeign(piece.extra, formatName, piece.at, encoding.target.lose);
      if (piece.citations !== undefined) encoding.target.lose(`${piece.at}.citations`);
      if (piece.cache !== undefined) encoding.target.lose(`${piece.at}.cache`);
      texts.push(piece.text);
    } else for (const { part } of encodeBlock(piece, encoding)) media.push(part);
  }
  return { text: texts.join('\n'), media };
}
