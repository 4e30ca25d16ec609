/**
 * State and rules that the encoders of Messages, Converse and generateContent requests share: blocks, function tools, cache marks, stop
 * sequences.
 */
import type {
  Block,
  ChatRequest,
  ReasoningBlock,
  MediaBlock,
  TextBlock,
  Tool,
  ToolCallBlock,
  ToolResultBlock,
} from '../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { listOf } from './fields.ts';
import { reportForeign } from './foreign.ts';
import { freeTextSchema } from './free-text.ts';
import { refuseContent } from './refuse.ts';
import { adaptSchema } from './json-schema/adapt.ts';
import type { Inlined } from './json-schema/references.ts';
import { ToolNames } from './tool-ids.ts';

/** State that the encoders of one request share, in formats whose messages are lists of blocks with alternating roles. */
export interface Writing {
  /** The format that is written. */
  readonly format: string;
  readonly target: EncodeTarget;
  /** True if the client's request is in this format. Its content is then sent unchanged, valid or not. */
  readonly native: boolean;
  /** Number of characters that inlined references have added to the schemas of the request. */
  readonly inlined: Inlined;
  /** The provider's spelling of a tool's name. */
  readonly toolName: (name: string) => string;
  /** Returns the changes to tools that the reply's decoder must undo. */
  readonly undoing: (
    customTools: readonly string[],
    unwrapTool: string | undefined,
  ) => Pick<EncodedRequest, 'toolNames' | 'customTools' | 'unwrapTool'>;
}

/**
 * Returns the shared state for a request to a channel of this format. `limit` is the maximum length of a tool name; `allowed` matches a legal character
 * of one, `first` a legal first character.
 */
export function writingOf(
  format: string,
  request: ChatRequest,
  target: EncodeTarget,
  limit: number,
  allowed?: RegExp,
  first?: RegExp,
): Writing {
  const native = request.format === format;
  const longest = Math.min(target.traits.toolNameLimit ?? limit, limit);
  // A client of this format may name calls in its history as it likes: only the length is the channel's concern.
  const names = native ? new ToolNames(longest, /[^]/) : new ToolNames(longest, allowed, first);
  let renamed = false;
  return {
    format,
    target,
    native,
    inlined: { characters: 0 },
    toolName(tool) {
      const spelled = native && tool === '' ? tool : names.there(tool);
      renamed ||= spelled !== tool;
      return spelled;
    },
    undoing: (customTools, unwrapTool) => ({
      ...(renamed ? { toolNames: names } : {}),
      ...(customTools.length === 0 ? {} : { customTools }),
      ...(unwrapTool === undefined ? {} : { unwrapTool }),
    }),
  };
}

/** Returns the names of the tools that take free text: they go as functions with one string. */
export function freeTextTools(tools: readonly Tool[]): readonly string[] {
  return tools.filter(({ type }) => type === 'custom').map((tool) => tool.name ?? '');
}

/** A function that the client carries out. */
export type FunctionTool = Extract<Tool, { type: 'function' }>;

/** Returns a tool that the client carries out as a function: one that takes free text has one string, and no grammar for it. */
export function asFunction(
  tool: FunctionTool | Extract<Tool, { type: 'custom' }>,
  { target }: Writing,
): FunctionTool {
  if (tool.type === 'function') return tool;
  const { format, ...named } = tool;
  if (format !== undefined && format.type !== 'text') target.drop(`${tool.at ?? 'tools'}.format`);
  return { ...named, type: 'function', schema: freeTextSchema };
}

/** Returns the stop sequences with visible characters: providers refuse others. Undefined when none is left. */
export function visibleStops(stops: JsonValue | undefined, { target }: Writing): JsonValue | undefined {
  const all = listOf(stops);
  const visible = all.filter((stop) => typeof stop === 'string' && stop.trim() !== '');
  if (visible.length < all.length) target.drop('settings.stop');
  return visible.length === 0 ? undefined : visible;
}

/** Returns the path of a piece in the client's request. */
export function requestPathOf({ at }: { readonly at?: string }): string {
  return at ?? 'messages';
}

/** {@link refuseContent} */
export function refuse(block: Block, what: string, { target, format }: Writing): undefined {
  return refuseContent(block, what, format, target);
}

/** Returns the cache mark of a piece. Such formats know two lifetimes; another is left to the provider's default. */
export function cacheMark<Type extends string>(
  type: Type,
  { ttl }: { readonly ttl?: string },
  { native, target }: Writing,
  at: string,
): { readonly type: Type; readonly ttl?: string } {
  if (ttl === undefined) return { type };
  if (ttl === '5m' || ttl === '1h' || native) return { type, ttl };
  target.drop(`${at}.cache`);
  return { type };
}

/** Returns the tools that may be called, where a format knows no subset of them: the others are left out. */
export function allowedTools({ tools, toolChoice }: ChatRequest, { target }: Writing): readonly Tool[] {
  if (toolChoice?.type !== 'allowed') return tools;
  const names = new Set(toolChoice.names);
  target.drop('tool_choice');
  return tools.filter((tool) => {
    const kept = names.has(tool.name ?? '') || names.has(tool.type) || names.has(tool.type.replace('-', '_'));
    if (!kept) target.drop(tool.at ?? 'tools');
    return kept;
  });
}

/** Returns the schema of a function as the model takes it: one that must be kept strictly is adapted to the model's part of JSON Schema. */
export function strictSchema(
  tool: FunctionTool,
  schema: JsonObject,
  { target, inlined }: Pick<Writing, 'target' | 'inlined'>,
): JsonObject {
  if (tool.strict !== true) return schema;
  const drop = (path: string): void => target.drop(`${tool.at ?? 'tools'}.schema.${path}`);
  return adaptSchema(schema, target.traits.schemaSubset, { drop, inlined });
}

/**
 * Returns the schema of a function, for providers that require the schema of an object. A client of the format keeps its own schema
 * unchanged.
 */
export function objectSchema(schema: JsonObject | undefined, { native }: Writing): JsonObject {
  if (schema === undefined) return { type: 'object', properties: {} };
  return native || schema.type !== undefined ? schema : { type: 'object', ...schema };
}

/** Functions by which such a format encodes its blocks; undefined for a block that is left out. */
export interface BlockWriters<W extends Writing> {
  /** Encodes a text that has content: see {@link canSendText}. */
  readonly words: (text: string, block: Block, writing: W) => JsonObject;
  readonly text: (block: TextBlock, writing: W) => JsonObject | undefined;
  readonly reasoning: (block: ReasoningBlock, writing: W) => JsonObject | undefined;
  readonly call: (block: ToolCallBlock, writing: W) => JsonObject;
  readonly result: (block: ToolResultBlock, writing: W) => JsonObject;
  readonly media: (block: MediaBlock, writing: W) => JsonObject | undefined;
}

/** Returns a writer of blocks; undefined for what is left out: empty text, another vendor's reasoning, what the operator lets drop. */
export function blockWriter<W extends Writing>(
  writers: BlockWriters<W>,
): (block: Block, writing: W) => JsonObject | undefined {
  return (block, writing) => {
    const { format, target } = writing;
    reportForeign(block.extra, format, block.at, target.drop);
    switch (block.type) {
      case 'text':
        return writers.text(block, writing);
      case 'refusal':
        target.drop(requestPathOf(block));
        return canSendText(block.text, block, writing)
          ? writers.words(block.text, block, writing)
          : undefined;
      case 'reasoning':
        return writers.reasoning(block, writing);
      case 'tool-call':
        dropProof(block, writing);
        return writers.call(block, writing);
      case 'tool-result':
        return writers.result(block, writing);
      case 'opaque':
        return block.format === format ? block.value : refuse(block, `a ${block.format} part`, writing);
      default:
        return writers.media(block, writing);
    }
  };
}

/** Returns false for a text without visible characters, which providers refuse. Reports that of another format's client as dropped. */
export function canSendText(text: string, block: Block, { native, target }: Writing): boolean {
  if (native) return text !== '' || block.type !== 'text' || block.proof === undefined;
  if (text.trim() !== '') return true;
  if (text !== '') target.drop(requestPathOf(block));
  return false;
}

/** Reports a proof that the format has no field for. */
export function dropProof(block: TextBlock | ToolCallBlock | ReasoningBlock, { target }: Writing): void {
  if (block.proof !== undefined) target.drop(`${requestPathOf(block)}.proof`);
}

/** Returns the parts of a result that may stand in one: neither reasoning nor calls. */
export function partsOfResult({ content }: ToolResultBlock, writing: Writing): readonly Block[] {
  if (content.every(mayStandInResult)) return content;
  return content.filter((part) => {
    const allowed = mayStandInResult(part);
    if (!allowed) refuse(part, `a ${part.type} in a tool result`, writing);
    return allowed;
  });
}

function mayStandInResult({ type }: Block): boolean {
  return type !== 'tool-call' && type !== 'tool-result' && type !== 'reasoning';
}
