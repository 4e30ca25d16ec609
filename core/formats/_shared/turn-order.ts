/**
 * Puts the turns of a conversation into the order that Messages and Converse demand: user first, roles alternating, each tool result
 * directly behind its call.
 */
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';

/** Functions by which a format builds the blocks that the order may need. */
export interface TurnWords {
  text(text: string): JsonObject;
  /** Returns the words of a block that is text and nothing else. */
  textIn(block: JsonObject): string | undefined;
  /** Returns the result block for a call, by the client's id, that has no result in the history. */
  noResult(id: string): JsonObject;
  drop(path: string): void;
}

/** Message before it is encoded. */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system';
  /** The client's path. */
  readonly at: string;
  /** Everything but tool results. */
  readonly content: readonly JsonObject[];
  /** The client's ids of the calls made here. */
  readonly calls: readonly string[];
  readonly results: readonly {
    readonly id: string;
    readonly at: string;
    readonly wire: readonly JsonObject[];
  }[];
  /** The client wrote one string. */
  readonly plain: boolean;
}

interface Call {
  readonly id: string;
  result?: readonly JsonObject[];
}

/** Text of the result for a call that has no result in the history. */
export const noResult = '(no result)';
/**
 * Text of the user turn that is put before a history that begins with the assistant. The format requires a user turn first and refuses empty
 * text; a full stop adds no meaning.
 */
export const opening = '.';

/**
 * Returns the history in the order that the format demands: every call's result in the message right behind it, in the order of the calls and
 * before anything else; neighbours of one role in one message; the user first.
 */
export function orderTurns(turns: readonly Turn[], words: TurnWords): Turn[] {
  const answered = answer(turns);
  const ordered: GrowingTurn[] = [];
  turns.forEach((turn, index) => {
    add(ordered, turn);
    const calls = answered[index] ?? [];
    if (calls.length > 0) add(ordered, resultTurn(turn.at, calls, words));
  });
  return userFirst(withoutTrailingSpace(ordered, words), words);
}

/** Assigns each call its result: the next one after it with its id. Throws 400 for a result without a call. */
function answer(turns: readonly Turn[]): Call[][] {
  /** Calls without a result by their id, the one that is answered next at the end: the first of the last turn. */
  const open = new Map<string, Call[]>();
  return turns.map((turn) => {
    for (const { id, at, wire } of turn.results) {
      const call = open.get(id)?.pop();
      if (call === undefined) {
        const message = `${at}: no tool call with the id "${id}" comes before this result.`;
        throw new GatewayError('invalid_value', message, { param: at });
      }
      call.result = wire;
    }
    const calls = turn.calls.map((id): Call => ({ id }));
    for (const call of calls.toReversed()) {
      const others = open.get(call.id);
      if (others === undefined) open.set(call.id, [call]);
      else others.push(call);
    }
    return calls;
  });
}

function resultTurn(at: string, calls: readonly Call[], words: TurnWords): Turn {
  const content = calls.flatMap(({ id, result }) => result ?? [words.noResult(id)]);
  return userTurn(at, content);
}

/** Returns a user turn at a path of the client's request. */
export function userTurn(at: string, content: readonly JsonObject[], plain = false): Turn {
  return { role: 'user', at, content, calls: [], results: [], plain };
}

/** A turn that neighbours may still be added to. */
interface GrowingTurn extends Turn {
  readonly content: JsonObject[];
  plain: boolean;
}

/** Appends a turn: skips an empty one, and merges it into the last turn when that has the same role. */
function add(ordered: GrowingTurn[], turn: Turn): void {
  if (turn.content.length === 0) return;
  const last = ordered.at(-1);
  if (last === undefined || last.role !== turn.role || turn.role === 'system') {
    ordered.push({ ...turn, content: [...turn.content] });
    return;
  }
  for (const block of turn.content) last.content.push(block);
  last.plain = false;
}

/** Trims a final assistant turn (prefill), because providers refuse one that ends in white space. */
function withoutTrailingSpace(turns: Turn[], words: TurnWords): Turn[] {
  const last = turns.at(-1);
  const block = last?.role === 'assistant' ? last.content.at(-1) : undefined;
  const encoded = block === undefined ? undefined : words.textIn(block);
  if (last === undefined || encoded === undefined) return turns;
  const text = encoded.trimEnd();
  if (text === encoded) return turns;
  words.drop(last.at);
  return [
    ...turns.slice(0, -1),
    { ...last, content: [...last.content.slice(0, -1), { ...block, ...words.text(text) }] },
  ];
}

function userFirst(turns: Turn[], words: TurnWords): Turn[] {
  const first = turns.find(({ role }) => role !== 'system');
  if (first?.role !== 'assistant') return turns;
  words.drop(first.at);
  return [userTurn(first.at, [words.text(opening)], true), ...turns];
}
