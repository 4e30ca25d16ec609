/**
 * State that the encoders of one request to a chat completions or Responses channel share, and the helpers that depend on it: tool names,
 * ids, cache marks, URLs, dropped fields.
 */
import type { Block, ChatRequest, MediaBlock } from '../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import { toDataUrl } from '../_shared/data-url.ts';
import { putBack } from '../_shared/extra.ts';
import { defined } from '../_shared/fields.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { thinksAbout } from '../../model/thinks.ts';
import type { Inlined } from '../_shared/json-schema/references.ts';
import { refuseContent } from '../_shared/refuse.ts';
import { spellToolId, ToolNames } from '../_shared/tool-ids.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';

/** State that the encoders of one request share. */
export interface Scope {
  /** The format that is written. */
  readonly format: string;
  readonly target: EncodeTarget;
  /** Number of characters that inlined references have added to the schemas of the request. */
  readonly inlined: Inlined;
  /** The request was written in another format: nothing of its spelling is known, and what the official API wants is supplied. */
  readonly foreign: boolean;
  /** Present where tool names must be re-spelled for the provider. */
  readonly names: ToolNames | undefined;
  /** Tools that take free text and go to the provider as functions. */
  readonly wrapped: ReadonlySet<string>;
  /** The model thinks about this request, and wants the reasoning back with which it called tools. */
  readonly wantsReasoning: boolean;
}

/** Returns the scope of a request to a channel of this format. */
export function scopeOf(format: string, request: ChatRequest, target: EncodeTarget): Scope {
  const foreign = request.format !== format;
  const names = toolNamesFor(request, target, foreign);
  const { traits } = target;
  const wantsReasoning = traits.replaysReasoning === true && thinksAbout(request.settings.reasoning, traits);
  const wrapped = wrappedTools(request, target);
  return { format, target, inlined: { characters: 0 }, foreign, names, wrapped, wantsReasoning };
}

/** Returns the tool names of up to 64 letters, digits, underscores and hyphens; only built where a name may have to change. */
function toolNamesFor(request: ChatRequest, target: EncodeTarget, foreign: boolean): ToolNames | undefined {
  const limit = target.traits.toolNameLimit;
  if (limit === undefined && !foreign) return undefined;
  const names = new ToolNames(limit ?? 64);
  for (const tool of request.tools)
    if (tool.type === 'function' || tool.type === 'custom') names.there(tool.name);
  return names;
}

/** Returns the names of free-text tools that must be sent as functions, because the model's trait `refuses` has `customTools`. */
function wrappedTools(request: ChatRequest, target: EncodeTarget): ReadonlySet<string> {
  if (target.traits.refuses?.includes('customTools') !== true) return new Set();
  return new Set(request.tools.filter((tool) => tool.type === 'custom').map((tool) => tool.name));
}

/** Changes to tools that the reply's decoder must undo. `unwrapTool` is the name of the tool that stands in for structured output. */
export function undoing(
  { names, wrapped }: Scope,
  unwrapTool: string | undefined,
): Pick<EncodedRequest, 'toolNames' | 'customTools' | 'unwrapTool'> {
  const customTools = wrapped.size === 0 ? undefined : [...wrapped];
  return defined({ toolNames: names, customTools, unwrapTool });
}

/** Puts a piece's own unknown fields back and reports those of other formats. `nested`: {@link putBack}. */
export function finishPiece(
  wire: MutableObject,
  piece: Pick<Block, 'extra' | 'at'>,
  scope: Scope,
  nested: readonly string[] = [],
): MutableObject {
  if (piece.extra === undefined) return wire;
  const own = piece.extra[scope.format];
  if (own !== undefined) putBack(wire, own, nested);
  reportForeign(piece.extra, scope.format, piece.at, scope.target.drop);
  return wire;
}

/** {@link refuseContent} */
export function refuse(
  piece: { readonly at?: string; readonly spare?: boolean },
  what: string,
  scope: Scope,
): undefined {
  return refuseContent(piece, what, scope.format, scope.target);
}

/** Reports a neutral field that this piece cannot take along. */
export function dropField(piece: { readonly at?: string }, field: string, scope: Scope): void {
  scope.target.drop(`${piece.at ?? ''}.${field}`);
}

/** Returns the id that pairs a call with what it gave, as providers take it. */
export function idOf({ id }: { readonly id: string }, { foreign }: Scope): string {
  return foreign ? spellToolId(id) : id;
}

/** Reports the cache mark of a piece and its fields of other formats, which this format cannot carry. */
export function dropBeside(
  piece: Pick<Block, 'cache' | 'extra' | 'at'>,
  { format, target }: Pick<Scope, 'format' | 'target'>,
): void {
  if (piece.cache !== undefined) target.drop(`${piece.at ?? ''}.cache`);
  reportForeign(piece.extra, format, piece.at, target.drop);
}

/** Returns the `type` of an opaque value, for sentences and losses. */
export function typeName(value: JsonObject): string {
  return typeof value.type === 'string' ? value.type : 'an unknown kind';
}

/**
 * Returns the mark that ends a cached part of the input for this model, or undefined if the model supports none. If the traits have no
 * mark, a client of the channel's own format keeps its mark.
 */
export function markFor(block: Pick<Block, 'extra'>, scope: Scope): CacheMark | undefined {
  const { cacheMark, refuses } = scope.target.traits;
  if (refuses?.includes('cache') === true) return undefined;
  if (cacheMark === 'cache_control' || cacheMark === 'prompt_cache_breakpoint') return cacheMark;
  if (cacheMark !== undefined || scope.foreign) return undefined;
  return block.extra?.[scope.format]?.$cache === 'cache_control'
    ? 'cache_control'
    : 'prompt_cache_breakpoint';
}

type CacheMark = 'cache_control' | 'prompt_cache_breakpoint';

/** Marks a part as the end of the cached input, where the model takes a mark, and reports what is dropped. Only `cache_control` has a lifetime. */
export function withCache(
  part: MutableObject,
  block: Pick<Block, 'cache' | 'extra' | 'at'>,
  scope: Scope,
): MutableObject {
  if (block.cache === undefined) return part;
  const { ttl } = block.cache;
  const mark = markFor(block, scope);
  if (mark === 'cache_control') part.cache_control = { type: 'ephemeral', ...defined({ ttl }) };
  else if (mark === undefined) dropField(block, 'cache', scope);
  else {
    part.prompt_cache_breakpoint = { mode: 'explicit' };
    if (ttl !== undefined) dropField(block, 'cache.ttl', scope);
  }
  return part;
}

/** Returns the URL of a source, letter for letter where a client of the format wrote it. */
export function urlOf({ source, extra }: MediaBlock, format: string): string {
  const spelled = extra?.[format]?.$url;
  if (typeof spelled === 'string') return spelled;
  if (source.kind === 'url') return source.url;
  return source.kind === 'data' ? toDataUrl(source.mimeType, source.data) : '';
}
