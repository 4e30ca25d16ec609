/** Writes requests in a canonical form, so that requests that mean the same have the same cache key in every format and spelling. */
import { hash } from 'node:crypto';
import {
  isChat,
  type Block,
  type ChatRequest,
  type GatewayRequest,
  type JsonValue,
  type Message,
  type Tool,
} from 'sluice';
import { compactJson } from './compact-json.ts';
import { isSpelling, saysTheSame } from './spellings.ts';

/** Settings in which equal requests may differ. */
export type Ignored = ReadonlySet<string>;

/** Canonical form of a request. Two requests are equal exactly when the JSON texts of their canonical forms are. */
export type Canonical = JsonValue;

/** Thrown for a number that JSON parsers read differently, because requests with it cannot be compared. */
export class UnsafeNumber extends Error {}

/** Objects of clients inside a request: the order of their members may change the answer, as that of a schema does. */
const verbatim: ReadonlySet<string> = new Set(['schema', 'value', 'metadata', 'format']);

type Plain = { [name: string]: JsonValue };

/** A turn that others may be joined to. */
type Turn = Plain & { content: JsonValue[] };

/** Returns the canonical form of a request. Throws {@link UnsafeNumber}. */
export function canonical(request: GatewayRequest, ignored: Ignored): Canonical {
  if (!isChat(request)) return canonicalOther(request);
  const { operation, model, system, messages, tools, toolChoice, settings, extra } = request;
  const ids = new ToolIds();
  const out: Plain = {
    operation,
    model,
    system: system.map((message) => canonicalMessage(message, message.content, ids, ignored)),
    messages: canonicalTurns(messages, ids, ignored),
    tools: tools.map((tool) => canonicalTool(tool, request, ignored)),
    settings: plain(settings, ignored, ignored),
  };
  // A model with tools may use them unless the client says otherwise.
  if (toolChoice !== undefined && toolChoice.type !== 'auto') out['toolChoice'] = plain(toolChoice, ignored);
  const kept = canonicalExtra(extra, request);
  if (kept !== undefined) out['extra'] = kept;
  return out;
}

/** Returns the canonical form of a request that is no chat: its members as the client sent them, in a fixed order. */
function canonicalOther(request: GatewayRequest): Plain {
  const { format: _format, extra, ...members } = request as GatewayRequest & Pick<Message, 'extra'>;
  const out: Plain = {};
  for (const [name, value] of Object.entries(members).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    if (value !== undefined) out[name] = checked(value as JsonValue);
  const kept = canonicalExtra(extra);
  if (kept !== undefined) out['extra'] = kept;
  return out;
}

/** Numbers the ids of tool calls by first appearance, because formats and clients generate different ids. */
class ToolIds {
  readonly #places = new Map<string, number>();
  readonly #names = new Map<string, string>();

  numberOf(id: string): number {
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    this.#places.set(id, this.#places.size);
    return this.#places.size - 1;
  }

  name(id: string, name: string): void {
    this.#names.set(id, name);
  }

  nameOf(id: string): string | undefined {
    return this.#names.get(id);
  }
}

/**
 * Divides messages in the same way for all formats: results of tools in turns of their own, consecutive ones in one turn, and calls of tools in
 * the turn of the model before them.
 */
function canonicalTurns(messages: readonly Message[], ids: ToolIds, ignored: Ignored): JsonValue[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    for (const [kind, content] of partsOf(message)) {
      const turn = canonicalMessage(message, content, ids, ignored);
      if (kind !== 'words') turn['role'] = kind === 'results' ? 'tool' : 'assistant';
      const before = turns.at(-1);
      if (
        kind !== 'words' &&
        before !== undefined &&
        before['role'] === turn['role'] &&
        !hasMore(turn) &&
        !hasMore(before)
      )
        for (const block of turn.content) before.content.push(block);
      else turns.push(turn);
    }
  }
  return turns;
}

function hasMore(turn: Turn): boolean {
  return Object.keys(turn).length > 2;
}

/** Divides a message into runs of tool results and of other content. A message that has only tool calls is one run. */
function partsOf({
  role,
  content,
}: Message): (readonly [kind: 'results' | 'calls' | 'words', readonly Block[]])[] {
  if (content.length > 0 && role === 'assistant' && content.every(({ type }) => type === 'tool-call'))
    return [['calls', content]];
  if (!content.some(({ type }) => type === 'tool-result')) return [['words', content]];
  const parts: ['results' | 'words', Block[]][] = [];
  for (const block of content) {
    const kind = block.type === 'tool-result' ? 'results' : 'words';
    const last = parts.at(-1);
    if (last?.[0] === kind) last[1].push(block);
    else parts.push([kind, [block]]);
  }
  return parts;
}

function canonicalMessage(
  { role, cache, extra }: Message,
  content: readonly Block[],
  ids: ToolIds,
  ignored: Ignored,
): Turn {
  const out: Turn = { role, content: content.map((block) => canonicalBlock(block, ids, ignored)) };
  if (cache !== undefined && !ignored.has('cacheMarks')) out['cache'] = plain(cache, ignored);
  const kept = canonicalExtra(extra);
  if (kept !== undefined) out['extra'] = kept;
  return out;
}

function canonicalBlock(block: Block, ids: ToolIds, ignored: Ignored): Plain {
  if (block.type === 'tool-call') {
    ids.name(block.id, block.name);
    const input = block.custom === true ? block.input : compactJson(block.input);
    return plain({ ...block, id: ids.numberOf(block.id), input }, ignored);
  }
  if (block.type !== 'tool-result') return plain(block, ignored);
  const { content, name, id, plain: _plain, ...rest } = block;
  return plain(
    {
      ...rest,
      id: ids.numberOf(id),
      // Only some formats repeat the name of the tool.
      ...(name === undefined || name === ids.nameOf(id) ? {} : { name }),
      content: content.map((one) => canonicalBlock(one, ids, ignored)),
    },
    ignored,
  );
}

function canonicalTool(tool: Tool, request: ChatRequest, ignored: Ignored): Plain {
  if (tool.type !== 'function') return plain(tool, ignored);
  // Without the member Responses means a strict tool where its schema allows that, the other formats none.
  const { strict = request.format === 'responses' ? 'unsaid' : false, extra, ...rest } = tool;
  const out = plain({ ...rest, strict }, ignored);
  const written = extra?.['generate-content']?.['$parameters'];
  const kept = canonicalExtra(
    extra,
    undefined,
    saysTheSame(written, tool.schema) ? '$parameters' : undefined,
  );
  if (kept !== undefined) out['extra'] = kept;
  return out;
}

/** Returns the format-specific members without those that are mere spellings. Undefined where nothing is left. */
function canonicalExtra(
  extra: Message['extra'],
  request?: ChatRequest,
  without?: string,
): JsonValue | undefined {
  if (extra === undefined) return undefined;
  const out: Plain = {};
  for (const format of Object.keys(extra).toSorted()) {
    const kept: Plain = {};
    const fields = extra[format] ?? {};
    for (const name of Object.keys(fields).toSorted()) {
      const value = fields[name];
      if (value === undefined || name === without || isSpelling(format, name, value)) continue;
      // Functions of a request stand in its tools.
      if (name === '$tools' && request?.tools.every(({ type }) => type === 'function') === true) continue;
      kept[name] = checked(value);
    }
    if (Object.keys(kept).length > 0) out[format] = kept;
  }
  return Object.keys(out).length === 0 ? undefined : out;
}

/** Returns a part of a neutral request with sorted members, without positions in the body and spellings. */
function plain(part: object, ignored: Ignored, without: ReadonlySet<string> = nothing): Plain {
  const out: Plain = {};
  const members = part as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(members).toSorted()) {
    const value = members[name];
    if (value === undefined || name === 'at' || name === 'plain' || without.has(name)) continue;
    if (name === 'cache' && ignored.has('cacheMarks')) continue;
    if (name === 'extra') {
      const kept = canonicalExtra(value as Message['extra']);
      if (kept !== undefined) out['extra'] = kept;
    } else out[name] = verbatim.has(name) ? checked(value as JsonValue) : plainValue(value, ignored);
  }
  return out;
}

const nothing: ReadonlySet<string> = new Set();

function plainValue(value: unknown, ignored: Ignored): JsonValue {
  if (Array.isArray(value)) return value.map((one) => plainValue(one, ignored));
  if (typeof value === 'object' && value !== null) return plain(value, ignored);
  return typeof value === 'string' ? shortened(value) : checked(value as JsonValue);
}

/** Number of characters from which on a digest stands for a text. */
const longText = 256;

/**
 * Returns a text, or the digest of a long one: to digest it takes a third of the time that it takes to write it as JSON and digest that. Where
 * texts stand no client can put an object, so that none is taken for the digest of a text. Digests do not tell lone surrogates apart.
 */
function shortened(text: string): JsonValue {
  if (text.length < longText || !text.isWellFormed()) return text;
  return { sha256: hash('sha256', text, 'base64url') };
}

/** Returns the value itself. Throws for numbers beyond those that every parser reads alike. */
function checked(value: JsonValue): JsonValue {
  if (typeof value === 'number') {
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) throw new UnsafeNumber();
  } else if (typeof value === 'object' && value !== null) {
    for (const one of Object.values(value) as (JsonValue | undefined)[]) if (one !== undefined) checked(one);
  }
  return value;
}
