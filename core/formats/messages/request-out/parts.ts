import type {
  Block,
  MediaBlock,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
} from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import { argumentsObject } from '../../_shared/call-arguments.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { encodeCitation } from '../citations.ts';
import { encodeSource } from './media.ts';
import { formatName, own } from '../wire.ts';
import { placeOf, refuse } from '../../_shared/history.ts';
import { addCache, type Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';

/** A block in wire words; undefined for one that is left out (empty text, another vendor's reasoning, what the operator lets drop). */
export function encodeBlock(block: Block, writing: Writing): JsonObject | undefined {
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
    default:
      return encodeMedia(block, writing);
  }
}

function encodeText(block: TextBlock, writing: Writing): JsonObject | undefined {
  const { lose } = writing.target;
  if (block.proof !== undefined) lose(`${placeOf(block)}.proof`);
  const wire = textOf(block.text, block, writing);
  if (wire === undefined && block.proof !== undefined) lose(placeOf(block));
  if (wire === undefined || block.citations === undefined) return wire;
  const citations = block.citations.map(encodeCitation).filter((citation) => citation !== undefined);
  if (citations.length < block.citations.length) lose(`${placeOf(block)}.citations`);
  return citations.length === 0 && block.citations.length > 0 ? wire : { ...wire, citations };
}

/** A text block. Providers refuse one without visible characters, so that another format's is left out. */
function textOf(text: string, block: Block, writing: Writing): JsonObject | undefined {
  if (!writing.native && text.trim() === '') {
    if (text !== '') writing.target.lose(placeOf(block));
    return undefined;
  }
  if (writing.native && text === '' && block.type === 'text' && block.proof !== undefined) return undefined;
  return finish({ type: 'text', text }, block, writing);
}

function encodeReasoning(block: ReasoningBlock, writing: Writing): JsonObject | undefined {
  const { proof, text } = block;
  if (proof?.format !== formatName) {
    writing.reasoningDropped = true;
    writing.target.lose(placeOf(block));
    if (proof !== undefined) writing.target.lose(`${placeOf(block)}.proof`);
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
  if (block.proof !== undefined) writing.target.lose(`${placeOf(block)}.proof`);
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
  const parts: JsonObject[] = [];
  for (const part of block.content) {
    const allowed = part.type !== 'tool-call' && part.type !== 'tool-result' && part.type !== 'reasoning';
    const wire = allowed
      ? encodeBlock(part, writing)
      : refuse(part, `a ${part.type} in a tool result`, writing);
    if (wire !== undefined) parts.push(wire);
  }
  return parts;
}

function encodeMedia(block: MediaBlock, writing: Writing): JsonObject | undefined {
  const { target } = writing;
  if (block.type === 'audio' || block.type === 'video') return refuse(block, block.type, writing);
  const encoded = encodeSource(block, writing);
  if (encoded === undefined) return undefined;
  if (block.detail !== undefined) target.lose(`${placeOf(block)}.detail`);
  const wire: MutableObject = { type: encoded.type, source: encoded.source };
  if (block.name !== undefined) {
    if (encoded.type === 'document' || writing.native) wire.title = block.name;
    else target.lose(`${placeOf(block)}.name`);
  }
  return finish(wire, block, writing);
}

/** Adds what only this format knows of a piece, and its cache mark. */
function finish(wire: MutableObject, block: Block, writing: Writing): JsonObject {
  addCache(wire, block, writing, placeOf(block));
  putBack(wire, own(block.extra), ['source', 'cache_control']);
  return wire;
}
