import { GatewayError } from '../../../sdk/errors.ts';
import type { JsonObject } from '../../../model/json.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import type { Writing } from './scope.ts';

/** One message on its way to the wire. */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system';
  /** The client's path. */
  readonly at: string;
  /** Everything but tool results. */
  readonly content: readonly JsonObject[];
  /** The client's ids of the calls made here. */
  readonly calls: readonly string[];
  readonly results: readonly { readonly id: string; readonly at: string; readonly wire: JsonObject }[];
  /** The client wrote one string. */
  readonly plain: boolean;
}

interface Call {
  readonly id: string;
  result?: JsonObject;
}

/** Said for a call that the history leaves without an answer. */
const noResult = '(no result)';
/**
 * What the user says when the history begins with the model's words: the format wants the user first and refuses empty text, and a
 * full stop adds no meaning.
 */
const opening = '.';

/**
 * The history in the order that the format demands: every call's result in the message right behind it, in the order of the calls and
 * before anything else; neighbours of one role in one message; the user first.
 */
export function orderTurns(turns: readonly Turn[], writing: Writing): Turn[] {
  const answered = answer(turns);
  const ordered: GrowingTurn[] = [];
  turns.forEach((turn, index) => {
    add(ordered, turn);
    const calls = answered[index] ?? [];
    if (calls.length > 0) add(ordered, resultTurn(turn.at, calls));
  });
  return userFirst(withoutTrailingSpace(ordered, writing), writing);
}

/** Gives each call its result: the nearest one behind it with its id. Throws 400 for a result that answers no call. */
function answer(turns: readonly Turn[]): Call[][] {
  /** Calls without a result by their id, the one that is answered next at the end: the first of the last turn. */
  const open = new Map<string, Call[]>();
  return turns.map((turn) => {
    for (const { id, at, wire } of turn.results) {
      const call = open.get(id)?.pop();
      if (call === undefined) {
        throw new GatewayError(
          'invalid_value',
          `${at}: no tool call with the id "${id}" comes before this result.`,
          {
            param: at,
          },
        );
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

function resultTurn(at: string, calls: readonly Call[]): Turn {
  const content = calls.map(
    ({ id, result }): JsonObject =>
      result ?? { type: 'tool_result', tool_use_id: spellToolId(id), content: noResult, is_error: true },
  );
  return { role: 'user', at, content, calls: [], results: [], plain: false };
}

/** A turn that neighbours may still be added to. */
interface GrowingTurn extends Turn {
  readonly content: JsonObject[];
  plain: boolean;
}

/** Appends a turn: nothing when it says nothing, to its neighbour when that has the same role. */
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

/** Providers refuse words put into the model's mouth that end in white space. */
function withoutTrailingSpace(turns: Turn[], { target }: Writing): Turn[] {
  const last = turns.at(-1);
  const block = last?.role === 'assistant' ? last.content.at(-1) : undefined;
  if (last === undefined || block?.type !== 'text' || typeof block.text !== 'string') return turns;
  const text = block.text.trimEnd();
  if (text === block.text) return turns;
  target.lose(last.at);
  return [...turns.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), { ...block, text }] }];
}

function userFirst(turns: Turn[], { target }: Writing): Turn[] {
  const first = turns.find(({ role }) => role !== 'system');
  if (first?.role !== 'assistant') return turns;
  target.lose(first.at);
  const spoken: Turn = {
    role: 'user',
    at: first.at,
    content: [{ type: 'text', text: opening }],
    calls: [],
    results: [],
    plain: true,
  };
  return [spoken, ...turns];
}
