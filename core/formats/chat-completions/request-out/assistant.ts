import type { Block, Message, ReasoningBlock, ToolCallBlock } from '../../../model/chat.ts';
import { isText, objectsOf } from '../../_shared/fields.ts';
import type { Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { writeContent } from './parts.ts';
import { putBack } from '../../_shared/extra.ts';
import { isTagged, writeDetail } from '../reasoning/details.ts';
import { formatName, own } from '../wire.ts';
import {
  finishPiece,
  idOf,
  dropBeside,
  dropField,
  refuse,
  typeName,
  type Scope,
} from '../../_openai/scope.ts';
import { writeArguments } from '../../_openai/calls.ts';

/**
 * Reasoning of a turn that called tools and of which none is there. DeepSeek and Kimi answer 400 to such turns without `reasoning_content` while they
 * think, and Kimi to empty ones: https://api-docs.deepseek.com/guides/thinking_mode, EverMind-AI/Raven#297, MoonshotAI/kimi-agent-sdk#169,
 * openclaw/openclaw#59689. A space is the least that Kimi accepts: litellm 1.85.0, llms/moonshot/chat/transformation.py.
 */
const standIn = ' ';

/** Encodes an assistant turn; undefined if nothing remains of it. */
export function writeAssistant(message: Message, scope: Scope): MutableObject | undefined {
  const contentBlocks: Block[] = [];
  const calls: JsonObject[] = [];
  const reasoning: ReasoningBlock[] = [];
  const wire: MutableObject = { role: 'assistant' };
  for (const block of message.content) {
    if (block.type === 'reasoning') reasoning.push(block);
    else if (block.type === 'tool-call') calls.push(writeCall(block, scope));
    else if (block.type === 'refusal' && own(block.extra).$part !== true)
      writeRefusal(block.text, block, wire, scope);
    else if (block.type === 'opaque' && own(block.extra).$in === 'tool_calls') calls.push(block.value);
    else if (isKeptAudio(block))
      wire.audio = finishPiece({ id: block.source.kind === 'file' ? block.source.id : '' }, block, scope);
    else if (isContent(block)) contentBlocks.push(block);
    else refuse(block, whatOf(block), scope);
  }
  writeReasoning(message, reasoning, calls.length > 0, wire, scope);
  if (calls.length > 0) wire.tool_calls = calls;
  const content = contentOf(message, contentBlocks, scope);
  if (content !== undefined) wire.content = content;
  putBack(wire, own(message.extra), ['audio']);
  const silent =
    (content === null || content === '') &&
    calls.length === 0 &&
    wire.refusal === undefined &&
    wire.audio === undefined;
  return scope.foreign && silent ? undefined : wire;
}

function isContent(block: Block): boolean {
  return (
    block.type === 'text' ||
    block.type === 'refusal' ||
    (block.type === 'opaque' && block.format === formatName)
  );
}

function isKeptAudio(
  block: Block,
): block is Extract<Block, { readonly type: 'audio' | 'image' | 'video' | 'file' }> {
  return block.type === 'audio' && block.source.kind === 'file' && block.source.format === formatName;
}

function whatOf(block: Block): string {
  if (block.type === 'opaque') return `content of type ${typeName(block.value)}`;
  return `${block.type === 'tool-result' ? 'a tool result' : block.type} in an assistant turn`;
}

function writeRefusal(text: string, block: Block, wire: MutableObject, scope: Scope): void {
  wire.refusal = typeof wire.refusal === 'string' ? wire.refusal + text : text;
  dropBeside(block, scope);
}

/** Returns the content. Every provider accepts `null` beside calls; if the client omitted it or sent an empty list, so does this. */
function contentOf(message: Message, blocks: readonly Block[], scope: Scope): JsonValue | undefined {
  const written = scope.foreign
    ? blocks.filter((block) => block.type !== 'text' || block.text !== '')
    : blocks;
  if (written.length > 0) return writeContent(written, message.plain, scope);
  const { $content } = own(message.extra);
  if (message.plain === true) return '';
  if ($content === 'parts') return [];
  return $content === 'absent' ? undefined : null;
}

function writeCall(block: ToolCallBlock, scope: Scope): JsonObject {
  if (block.cache !== undefined) dropField(block, 'cache', scope);
  const beside = own(block.extra).$extra_content;
  if (block.proof !== undefined && !bringsProof(block) && !takesProof(block.proof, scope))
    dropField(block, 'proof', scope);
  const id = idOf(block, scope);
  const name = scope.names?.there(block.name) ?? block.name;
  const call: MutableObject =
    block.custom && !scope.wrapped.has(block.name)
      ? { id, type: 'custom', custom: { name, input: block.input } }
      : { id, type: 'function', function: { name, arguments: writeArguments(block, scope.foreign) } };
  if (isObject(beside)) call.extra_content = beside;
  return finishPiece(call, block, scope, ['function', 'custom']);
}

/** Returns true when the call's proof goes back in the place where this format's client had it. */
function bringsProof(block: ToolCallBlock): boolean {
  const { $detail, $extra_content, extra_content } = own(block.extra);
  return $detail !== undefined || $extra_content !== undefined || extra_content !== undefined;
}

/** Returns true if the provider accepts a proof. OpenRouter accepts those of several makers, each tagged with its maker. */
function takesProof(proof: Proof, scope: Scope): boolean {
  return scope.target.traits.reasoning === 'object' && isTagged(proof);
}

/**
 * Encodes reasoning of earlier turns. Reasoning from a client of this format is sent unchanged. Reasoning from another format is omitted,
 * unless the model's traits require it: as text beside tool calls (`replaysReasoning`), or as entries with their proofs (OpenRouter).
 */
function writeReasoning(
  message: Message,
  blocks: readonly ReasoningBlock[],
  hasCalls: boolean,
  wire: MutableObject,
  scope: Scope,
): void {
  const marks = own(message.extra);
  const details = [...keptDetails(message, scope)];
  const strings = ['reasoning_content', 'reasoning'].filter((field) => marks[`$${field}`] !== undefined);
  let text = '';
  let others = '';
  for (const block of blocks) {
    if (isOwn(block, strings.length > 0)) text += block.text;
    else others += writeForeign(block, hasCalls, details, scope);
    dropBeside(block, scope);
  }
  // Proofs on calls are entries that name their call.
  for (const block of message.content) {
    if (block.type !== 'tool-call' || block.proof === undefined) continue;
    if (bringsProof(block) || !takesProof(block.proof, scope)) continue;
    details.push(writeDetail(block.proof, { index: details.length, callId: idOf(block, scope) }));
  }
  for (const field of strings) {
    const mark = marks[`$${field}`];
    const string = mark === true ? text : mark;
    if (mark === '' || (blocks.length > 0 && string !== undefined)) wire[field] = string;
  }
  if (others !== '')
    wire.reasoning_content =
      typeof wire.reasoning_content === 'string' ? wire.reasoning_content + others : others;
  if (hasCalls && scope.wantsReasoning && !isText(wire.reasoning_content)) wire.reasoning_content = standIn;
  if (
    details.length > 0 ||
    (Array.isArray(marks.$reasoning_details) && marks.$reasoning_details.length === 0)
  )
    wire.reasoning_details = details;
}

/** Returns true for reasoning that a client of this format sent. */
function isOwn(block: ReasoningBlock, hasStrings: boolean): boolean {
  return own(block.extra).$detail !== undefined || (hasStrings && block.proof === undefined);
}

/** Returns the text to replay; adds to `details` or reports the loss otherwise. */
function writeForeign(block: ReasoningBlock, hasCalls: boolean, details: JsonObject[], scope: Scope): string {
  if (block.proof !== undefined && takesProof(block.proof, scope)) {
    details.push(writeDetail(block.proof, { index: details.length, text: block.text }));
    return '';
  }
  if (scope.target.traits.replaysReasoning !== true || !hasCalls || block.text === '') {
    scope.target.drop(block.at ?? 'messages');
    return '';
  }
  if (block.proof !== undefined) dropField(block, 'proof', scope);
  return block.text;
}

/** Returns the client's own entries whose block is still there, with that block's text. One sealed by the gateway is another vendor's: it stays here. */
function keptDetails(message: Message, scope: Scope): readonly JsonObject[] {
  const entries = objectsOf(own(message.extra).$reasoning_details);
  if (entries.length === 0) return entries;
  /** First block of each entry, by the position of the entry. */
  const blocks = new Map<JsonValue | undefined, Block>();
  for (const block of message.content) {
    const { $detail } = own(block.extra);
    if (!blocks.has($detail)) blocks.set($detail, block);
  }
  return entries.flatMap((entry, index): readonly JsonObject[] => {
    const block = blocks.get(index);
    if (block?.type !== 'reasoning' && block?.type !== 'text' && block?.type !== 'tool-call') return [];
    if (own(block.extra).$sealed !== true)
      return [block.type === 'reasoning' ? withText(entry, block) : entry];
    dropField(block, 'proof', scope);
    return [];
  });
}

function withText(entry: JsonObject, block: ReasoningBlock): JsonObject {
  if (own(block.extra).$text === 'beside') return entry;
  const field =
    typeof entry.text === 'string' ? 'text' : typeof entry.summary === 'string' ? 'summary' : undefined;
  return field === undefined || entry[field] === block.text ? entry : { ...entry, [field]: block.text };
}
