import type {
  Block,
  MediaBlock,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
} from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { argumentsObject } from '../../../json/arguments.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { encodeCitation } from '../citations.ts';
import { encodeSource } from './media.ts';
import { formatName, own } from '../wire.ts';
import {
  blockWriter,
  canSendText,
  dropProof,
  partsOfResult,
  requestPathOf,
  refuse,
} from '../../_shared/writing.ts';
import { addCache, type Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';

/** A block in wire words. */
export const encodeBlock = blockWriter<Writing>({
  words: textBlock,
  text: encodeText,
  reasoning: encodeReasoning,
  call: encodeCall,
  result: encodeResult,
  media: encodeMedia,
});

function encodeText(block: TextBlock, writing: Writing): JsonObject | undefined {
  const { drop } = writing.target;
  dropProof(block, writing);
  if (!canSendText(block.text, block, writing)) {
    if (block.proof !== undefined) drop(requestPathOf(block));
    return undefined;
  }
  const wire = textBlock(block.text, block, writing);
  if (block.citations === undefined) return wire;
  const citations = block.citations.map(encodeCitation).filter((citation) => citation !== undefined);
  if (citations.length < block.citations.length) drop(`${requestPathOf(block)}.citations`);
  return citations.length === 0 && block.citations.length > 0 ? wire : { ...wire, citations };
}

function textBlock(text: string, block: Block, writing: Writing): JsonObject {
  return finish({ type: 'text', text }, block, writing);
}

function encodeReasoning(block: ReasoningBlock, writing: Writing): JsonObject | undefined {
  const { proof, text } = block;
  if (proof?.format !== formatName) {
    writing.reasoningDropped = true;
    writing.target.drop(requestPathOf(block));
    dropProof(block, writing);
    return undefined;
  }
  const wire: MutableObject =
    proof.kind === 'encrypted'
      ? { type: 'redacted_thinking', data: proof.value }
      : { type: 'thinking', thinking: text, signature: proof.value };
  putBack(wire, own(block.extra));
  return wire;
}

function encodeCall(block: ToolCallBlock, writing: Writing): JsonObject {
  return finish(
    {
      type: 'tool_use',
      id: writing.native ? block.id : spellToolId(block.id),
      name: writing.toolName(block.name),
      input: block.custom === true ? { input: block.input } : argumentsObject(block.input),
    },
    block,
    writing,
  );
}

function encodeResult(block: ToolResultBlock, writing: Writing): JsonObject {
  const wire: MutableObject = {
    type: 'tool_result',
    tool_use_id: writing.native ? block.id : spellToolId(block.id),
  };
  const content = resultContent(block, writing);
  if (content !== undefined) wire.content = content;
  if (block.failed !== undefined) wire.is_error = block.failed;
  return finish(wire, block, writing);
}

function resultContent(block: ToolResultBlock, writing: Writing): string | readonly JsonObject[] | undefined {
  const [first] = block.content;
  if (block.content.length === 0) return own(block.extra).$content === 'absent' ? undefined : [];
  if (block.plain === true && block.content.length === 1 && first?.type === 'text') return first.text;
  return partsOfResult(block, writing)
    .map((part) => encodeBlock(part, writing))
    .filter((wire) => wire !== undefined);
}

function encodeMedia(block: MediaBlock, writing: Writing): JsonObject | undefined {
  const { target } = writing;
  if (block.type === 'audio' || block.type === 'video') return refuse(block, block.type, writing);
  const encoded = encodeSource(block, writing);
  if (encoded === undefined) return undefined;
  if (block.detail !== undefined) target.drop(`${requestPathOf(block)}.detail`);
  const wire: MutableObject = { type: encoded.type, source: encoded.source };
  if (block.name !== undefined) {
    if (encoded.type === 'document' || writing.native) wire.title = block.name;
    else target.drop(`${requestPathOf(block)}.name`);
  }
  return finish(wire, block, writing);
}

/** Adds what only this format knows of a piece, and its cache mark. */
function finish(wire: MutableObject, block: Block, writing: Writing): JsonObject {
  addCache(wire, block, writing, requestPathOf(block));
  putBack(wire, own(block.extra), ['source', 'cache_control']);
  return wire;
}
