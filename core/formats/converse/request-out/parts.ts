import type {
  Block,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
} from '../../../model/chat.ts';
import { isObject, parseObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { argumentsObject } from '../../_shared/call-arguments.ts';
import { textsIn } from '../../_shared/fields.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { ownCitation } from '../citations.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName, own } from '../wire.ts';
import { encodeMedia } from './media.ts';
import { placeOf, refuse } from '../../_shared/history.ts';
import { cachePoint, type Writing } from './scope.ts';

const nothing: readonly JsonObject[] = [];

/** A block in wire words, with the cache point behind it; empty for one that is left out (empty text, another vendor's reasoning). */
export function encodeBlock(block: Block, writing: Writing): readonly JsonObject[] {
  const wire = wireOf(block, writing);
  if (wire === undefined) {
    if (block.cache !== undefined) writing.target.lose(`${placeOf(block)}.cache`);
    return nothing;
  }
  return block.cache === undefined ? [wire] : [wire, ...cachePoint(block.cache, placeOf(block), writing)];
}

function wireOf(block: Block, writing: Writing): JsonObject | undefined {
  loseForeign(block.extra, formatName, block.at, writing.target.lose);
  switch (block.type) {
    case 'text':
      return encodeText(block, writing);
    case 'refusal':
      writing.target.lose(placeOf(block));
      return textOf(block.text, block, writing);
    case 'reasoning':
      return encodeReasoning(block, writing);
    case 'tool-call':
      return encodeCall(block, writing);
    case 'tool-result':
      return encodeResult(block, writing);
    case 'opaque':
      return block.format === formatName ? block.value : refuse(block, `a ${block.format} part`, writing);
    default: {
      const media = encodeMedia(block, writing);
      if (media === undefined) return undefined;
      const { key, wire } = media;
      const kept = own(block.extra);
      if (isObject(kept.guardContent)) return { guardContent: { image: wire } };
      return finish({ [key]: wire }, kept, [`${key}.source.s3Location`, `${key}.source`, key]);
    }
  }
}

function encodeText(block: TextBlock, writing: Writing): JsonObject | undefined {
  const { lose } = writing.target;
  const kept = own(block.extra);
  if (block.proof !== undefined) lose(`${placeOf(block)}.proof`);
  const citations = block.citations?.map(ownCitation).filter((citation) => citation !== undefined) ?? [];
  const cited = kept.$cited !== undefined || citations.length > 0;
  if (block.citations !== undefined && (!cited || citations.length < block.citations.length))
    lose(`${placeOf(block)}.citations`);
  if (kept.$json === true) return finish({ json: valueOf(block.text) }, kept);
  if (isObject(kept.guardContent)) {
    const { guardContent, ...rest } = kept;
    const { text, ...others } = guardContent;
    const wire = { ...(isObject(text) ? text : {}), text: block.text };
    return finish({ guardContent: { ...others, text: wire } }, rest);
  }
  if (!cited) {
    const wire = textOf(block.text, block, writing);
    if (wire === undefined && block.proof !== undefined) lose(placeOf(block));
    return wire;
  }
  const content = saidBy(kept.$cited, block.text);
  return finish({ citationsContent: { content, citations } }, kept, ['citationsContent']);
}

/** The words as the client divided them, where they are still the same. */
function saidBy(parts: JsonValue | undefined, text: string): JsonValue {
  if (!Array.isArray(parts)) return [{ text }];
  return textsIn(parts).join('') === text ? parts : [{ text }];
}

function valueOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

/** A text block. Providers refuse one without visible characters, so that another format's is left out. */
function textOf(text: string, block: Block, writing: Writing): JsonObject | undefined {
  if (!writing.native && text.trim() === '') {
    if (text !== '') writing.target.lose(placeOf(block));
    return undefined;
  }
  if (writing.native && text === '' && block.type === 'text' && block.proof !== undefined) return undefined;
  return finish({ text }, own(block.extra));
}

function encodeReasoning(block: ReasoningBlock, writing: Writing): JsonObject | undefined {
  const { proof, text } = block;
  const bare = proof === undefined && (writing.native || block.extra?.[formatName] !== undefined);
  if (proof?.format !== formatName && !bare) {
    writing.target.lose(placeOf(block));
    if (proof !== undefined) writing.target.lose(`${placeOf(block)}.proof`);
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
  if (block.proof !== undefined) writing.target.lose(`${placeOf(block)}.proof`);
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
    content: block.content.flatMap((part) => resultPart(part, writing)),
  };
  if (block.failed === true || (block.failed === false && writing.native))
    wire.status = block.failed ? 'error' : 'success';
  return finish({ toolResult: wire }, own(block.extra), ['toolResult']);
}

/** Neither reasoning nor calls, nor a cache point, stand in a result. */
function resultPart(part: Block, writing: Writing): readonly JsonObject[] {
  if (part.type === 'tool-call' || part.type === 'tool-result' || part.type === 'reasoning') {
    refuse(part, `a ${part.type} in a tool result`, writing);
    return nothing;
  }
  const { cache, ...bare } = part;
  if (cache !== undefined && !writing.native) writing.target.lose(`${placeOf(part)}.cache`);
  return encodeBlock(writing.native ? part : bare, writing);
}

/** Adds what only this format knows of a piece. */
function finish(wire: MutableObject, kept: JsonObject, inner: readonly string[] = []): JsonObject {
  putBack(wire, kept, inner);
  return wire;
}
