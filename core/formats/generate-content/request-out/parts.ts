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
import { argumentsObject } from '../../../json/arguments.ts';
import { officialType } from '../../_shared/data-url.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../../model/json.ts';
import { asksByLevel, type Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { writeResponse } from '../tools.ts';
import { typeOfAddress, wantsBytes, writeDetail } from '../parts.ts';
import { formatName, own } from '../wire.ts';
import { defined } from '../../_shared/fields.ts';
import { dropProof, requestPathOf, refuse } from '../../_shared/writing.ts';

/** Returns a block of a message as parts: usually one, none for what is dropped. Throws 400 for content that cannot be carried. */
export function encodeBlock(block: Block, writing: Writing): readonly MutableObject[] {
  const { drop } = writing.target;
  reportForeign(block.extra, formatName, block.at, drop);
  if (block.cache !== undefined) drop(`${requestPathOf(block)}.cache`);
  if (block.type === 'tool-result') return encodeResult(block, writing);
  const part = encodePart(block, writing);
  return part === undefined ? [] : [part];
}

function encodePart(block: Exclude<Block, ToolResultBlock>, writing: Writing): MutableObject | undefined {
  switch (block.type) {
    case 'text':
      return encodeText(block, writing);
    case 'refusal':
      // The words go on as plain text: that they decline is lost.
      writing.target.drop(requestPathOf(block));
      return block.text === '' ? undefined : { text: block.text };
    case 'reasoning':
      return encodeReasoning(block, writing);
    case 'tool-call':
      return encodeCall(block, writing);
    case 'opaque':
      if (block.format === formatName) return { ...block.value };
      return refuse(block, `a part of the ${block.format} format`, writing);
    default:
      return encodeMedia(block, writing);
  }
}

function isOwn(proof: Proof | undefined): proof is Proof {
  return proof?.format === formatName;
}

/** Puts our own proof where it belongs; a foreign one is reported and never sent. */
function sign(part: MutableObject, block: TextBlock | ToolCallBlock, writing: Writing): void {
  if (isOwn(block.proof)) part.thoughtSignature = block.proof.value;
  else if (block.proof !== undefined) {
    dropProof(block, writing);
    writing.unproved.add(part);
  }
}

function textPart({ text, extra }: TextBlock | ReasoningBlock): MutableObject {
  return own(extra).$noText === true && text === '' ? {} : { text };
}

function encodeText(block: TextBlock, writing: Writing): MutableObject | undefined {
  if (block.citations !== undefined) writing.target.drop(`${requestPathOf(block)}.citations`);
  if (!writing.native && block.text === '' && !isOwn(block.proof)) return undefined;
  const part = textPart(block);
  sign(part, block, writing);
  putBack(part, own(block.extra));
  return part;
}

/** Thoughts are sent only when this format's provider thought them; a native client's own are its affair. */
function encodeReasoning(block: ReasoningBlock, { native, target }: Writing): MutableObject | undefined {
  const { proof } = block;
  if (!isOwn(proof) && !(native && proof === undefined)) {
    target.drop(block.at ?? 'reasoning');
    return undefined;
  }
  const part = textPart(block);
  part.thought = true;
  if (proof !== undefined) part.thoughtSignature = proof.value;
  putBack(part, own(block.extra));
  return part;
}

function encodeMedia(block: MediaBlock, writing: Writing): MutableObject | undefined {
  const part = encodeSource(block, writing);
  if (part === undefined) return undefined;
  if (block.detail !== undefined) writeResolution(part, block, block.detail, writing);
  putBack(part, own(block.extra), ['inlineData', 'fileData']);
  return part;
}

function encodeSource(block: MediaBlock, writing: Writing): MutableObject | undefined {
  const { source, name } = block;
  const { native, target } = writing;
  const shown = native ? defined({ displayName: name }) : {};
  if (!native && name !== undefined) target.drop(`${requestPathOf(block)}.name`);
  switch (source.kind) {
    case 'data': {
      const mimeType = native ? source.mimeType : officialType(source.mimeType);
      return { inlineData: { mimeType, data: source.data, ...shown } };
    }
    case 'url': {
      if (!native && wantsBytes(block, target.traits))
        return refuse(block, `${block.type === 'image' ? 'an image' : 'a file'} by URL`, writing);
      const mimeType = native ? source.mimeType : typeOf(block, source);
      return { fileData: { ...defined({ mimeType }), fileUri: source.url, ...shown } };
    }
    case 'file': {
      const { format, id, mimeType } = source;
      if (format !== formatName) return refuse(block, 'a file stored by another provider', writing);
      return { fileData: { ...defined({ mimeType }), fileUri: id, ...shown } };
    }
  }
}

/** Returns the type of a medium by URL, because the provider requires one. Default for images: JPEG. */
function typeOf({ type }: MediaBlock, { url, mimeType }: Source & { kind: 'url' }): string | undefined {
  if (mimeType !== undefined) return officialType(mimeType);
  return typeOfAddress(url) ?? (type === 'image' ? 'image/jpeg' : undefined);
}

/** Writes the resolution. `auto` is the default and is omitted. */
function writeResolution(part: MutableObject, block: MediaBlock, detail: string, writing: Writing): void {
  const resolution = writing.native || asksByLevel(writing) ? writeDetail(detail) : undefined;
  if (resolution !== undefined) part.mediaResolution = resolution;
  else if (detail !== 'auto') writing.target.drop(`${requestPathOf(block)}.detail`);
}

function encodeCall(block: ToolCallBlock, writing: Writing): MutableObject {
  const fields = own(block.extra);
  const call: MutableObject = {};
  if (fields.$noId !== true) call.id = block.id;
  call.name = writing.toolName(block.name);
  if (block.input !== '' || fields.$noArgs !== true)
    call.args = block.custom === true ? { input: block.input } : argumentsObject(block.input);
  const part: MutableObject = { functionCall: call };
  sign(part, block, writing);
  putBack(part, fields, ['functionCall']);
  return part;
}

function encodeResult(block: ToolResultBlock, writing: Writing): readonly MutableObject[] {
  const fields = own(block.extra);
  const result: MutableObject = {};
  if (typeof fields.$id === 'string') result.id = fields.$id;
  else if (fields.$noId !== true) result.id = block.id;
  result.name = writing.toolName(block.name ?? writing.calledNames.get(block.id) ?? 'unknown');
  const { text, media } = splitContent(block, writing);
  if (fields.$noResponse !== true) result.response = writeResponse(text, block.failed === true, fields.$key);
  // For older models it follows in the same turn.
  const parts = writing.native || asksByLevel(writing) ? media : [];
  if (parts.length > 0 || fields.$noParts === true) result.parts = parts;
  const part: MutableObject = { functionResponse: result };
  putBack(part, fields, ['functionResponse']);
  return parts.length === media.length ? [part] : [part, ...media];
}

function splitContent(
  { content }: ToolResultBlock,
  writing: Writing,
): { readonly text: string; readonly media: readonly MutableObject[] } {
  const { drop } = writing.target;
  const texts: string[] = [];
  const media: MutableObject[] = [];
  for (const piece of content) {
    if (piece.type === 'text') {
      reportForeign(piece.extra, formatName, piece.at, drop);
      if (piece.citations !== undefined) drop(`${requestPathOf(piece)}.citations`);
      if (piece.cache !== undefined) drop(`${requestPathOf(piece)}.cache`);
      texts.push(piece.text);
    } else for (const part of encodeBlock(piece, writing)) media.push(part);
  }
  return { text: texts.join('\n'), media };
}
