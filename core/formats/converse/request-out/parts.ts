/** Writes the content blocks of a Converse request. */
import type {
  Block,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
} from '../../../model/chat.ts';
import { parseJson, parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { argumentsObject } from '../../../json/arguments.ts';
import { textsIn } from '../../_shared/fields.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { ownCitation } from '../citations.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName, own } from '../wire.ts';
import { encodeMedia } from './media.ts';
import { blockWriter, canSendText, dropProof, partsOfResult, requestPathOf } from '../../_shared/writing.ts';
import { cachePoint, type Writing } from './scope.ts';

const nothing: readonly JsonObject[] = [];

/** Returns a block in wire words, with the cache point behind it; empty for one that is left out (empty text, another vendor's reasoning). */
export function encodeBlock(block: Block, writing: Writing): readonly JsonObject[] {
  const wire = wireOf(block, writing);
  if (wire === undefined) {
    if (block.cache !== undefined) writing.target.drop(`${requestPathOf(block)}.cache`);
    return nothing;
  }
  return block.cache === undefined
    ? [wire]
    : [wire, ...cachePoint(block.cache, requestPathOf(block), writing)];
}

const wireOf = blockWriter<Writing>({
  words: textBlock,
  text: encodeText,
  reasoning: encodeReasoning,
  call: encodeCall,
  result: encodeResult,
  media(block, writing) {
    const media = encodeMedia(block, writing);
    if (media === undefined) return undefined;
    const { key, wire } = media;
    const kept = own(block.extra);
    if (isObject(kept.guardContent)) return { guardContent: { image: wire } };
    return finish({ [key]: wire }, kept, [`${key}.source.s3Location`, `${key}.source`, key]);
  },
});

function encodeText(block: TextBlock, writing: Writing): JsonObject | undefined {
  const { drop } = writing.target;
  const kept = own(block.extra);
  dropProof(block, writing);
  const citations = block.citations?.map(ownCitation).filter((citation) => citation !== undefined) ?? [];
  const cited = kept.$cited !== undefined || citations.length > 0;
  if (block.citations !== undefined && (!cited || citations.length < block.citations.length))
    drop(`${requestPathOf(block)}.citations`);
  if (kept.$json === true) return finish({ json: valueOf(block.text) }, kept);
  if (isObject(kept.guardContent)) {
    const { guardContent, ...rest } = kept;
    const { text, ...others } = guardContent;
    const wire = { ...(isObject(text) ? text : {}), text: block.text };
    return finish({ guardContent: { ...others, text: wire } }, rest);
  }
  if (!cited) {
    if (canSendText(block.text, block, writing)) return textBlock(block.text, block);
    if (block.proof !== undefined) drop(requestPathOf(block));
    return undefined;
  }
  const content = contentParts(kept.$cited, block.text);
  return finish({ citationsContent: { content, citations } }, kept, ['citationsContent']);
}

/** Returns the words as the client divided them, where they are still the same. */
function contentParts(parts: JsonValue | undefined, text: string): JsonValue {
  if (!Array.isArray(parts)) return [{ text }];
  return textsIn(parts).join('') === text ? parts : [{ text }];
}

function valueOf(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function textBlock(text: string, { extra }: Block): JsonObject {
  return finish({ text }, own(extra));
}

function encodeReasoning(block: ReasoningBlock, writing: Writing): JsonObject | undefined {
  const { proof, text } = block;
  const bare = proof === undefined && (writing.native || block.extra?.[formatName] !== undefined);
  if (proof?.format !== formatName && !bare) {
    writing.target.drop(requestPathOf(block));
    dropProof(block, writing);
    return undefined;
  }
  const wire: JsonObject =
    proof?.kind === 'encrypted'
      ? { redactedContent: proof.value }
      : { reasoningText: { text, ...(proof === undefined ? {} : { signature: proof.value }) } };
  return finish({ reasoningContent: wire }, own(block.extra), [
    'reasoningContent.reasoningText',
    'reasoningContent',
  ]);
}

function encodeCall(block: ToolCallBlock, writing: Writing): JsonObject {
  const wire = {
    toolUseId: writing.native ? block.id : spellToolId(block.id),
    name: writing.toolName(block.name),
    input: inputOf(block, writing),
  };
  return finish({ toolUse: wire }, own(block.extra), ['toolUse']);
}

function inputOf({ custom, input }: ToolCallBlock, { native }: Writing): JsonValue {
  if (custom === true) return { input };
  return native && parseObject(input) === undefined ? valueOf(input) : argumentsObject(input);
}

function encodeResult(block: ToolResultBlock, writing: Writing): JsonObject {
  const wire: MutableObject = {
    toolUseId: writing.native ? block.id : spellToolId(block.id),
    content: partsOfResult(block, writing).flatMap((part) => resultPart(part, writing)),
  };
  if (block.failed === true || (block.failed === false && writing.native))
    wire.status = block.failed ? 'error' : 'success';
  return finish({ toolResult: wire }, own(block.extra), ['toolResult']);
}

/** Returns the parts of a result, in which cache points are not allowed. */
function resultPart(part: Block, writing: Writing): readonly JsonObject[] {
  const { cache, ...bare } = part;
  if (cache !== undefined && !writing.native) writing.target.drop(`${requestPathOf(part)}.cache`);
  return encodeBlock(writing.native ? part : bare, writing);
}

/** Adds what only this format knows of a piece. */
function finish(wire: MutableObject, kept: JsonObject, inner: readonly string[] = []): JsonObject {
  putBack(wire, kept, inner);
  return wire;
}
