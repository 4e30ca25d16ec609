/** Finds the turns of a request whose reasoning the client has not sent back, and puts it back where the target may receive it. */
import {
  chatOutlineOf,
  type Block,
  type Message,
  type ReasoningBlock,
  type Call,
  type Target,
  type ToolCallBlock,
  type Loss,
} from 'sluice';
import type { ConversationId } from './absences.ts';
import { exactKey, idKey, isByChance, whereOf } from './call-keys.ts';
import { Before, conversationOf, openingOf, type Readable } from './conversation.ts';
import type { Kept, Memory } from './memory.ts';
import { isProved, isReasoning, restored } from './restore.ts';
import { fits, proofsOf, type Turn } from './turn.ts';

/** Result of {@link recall}. */
export interface Recalled {
  /** Changed messages; undefined where nothing was put back. */
  readonly messages?: readonly Message[];
  /** Turns whose stored reasoning may not be sent to this target, by the client's paths. */
  readonly losses: readonly Loss[];
}

/** Target of the request, and the formats. */
export interface RecallOptions {
  readonly target: Target;
  /** Format of the client, and format of the target. */
  readonly from: string;
  readonly to: string;
}

/** A message with tool calls, in a turn without a proof. */
interface Bare {
  readonly index: number;
  readonly calls: readonly ToolCallBlock[];
  /** Range of the messages of the turn, because some formats write each part of a turn as a message. `to` is exclusive. */
  readonly span: { readonly from: number; readonly to: number };
}

/** Such a message with the stored turn that it belongs to. */
export interface Forgotten extends Bare {
  readonly turn: Turn;
}

/**
 * Puts the model's reasoning back into the turns that a client has sent without it. Reasoning that the client sent stays. Where the client sent the
 * text of the reasoning without its proof, text and proof are replaced together.
 */
export function recall(
  messages: readonly Message[],
  forgotten: readonly Forgotten[],
  { target, from, to }: RecallOptions,
): Recalled {
  const losses: Loss[] = [];
  const restoredThoughts = new Map<Turn, number>();
  const mended = new Map<number, readonly Block[]>();
  const present = forgotten.length === 0 ? none : proofValues(messages);
  for (const { index, turn, span } of forgotten) {
    const message = messages[index];
    if (message === undefined) continue;
    const own = messages.slice(span.from, span.to).flatMap(({ content }) => content.filter(isReasoning));
    if (!fits(turn, target, to)) {
      if (restoredThoughts.has(turn) || own.length > 0) continue;
      restoredThoughts.set(turn, 0);
      losses.push({ path: `${message.at ?? 'messages'}.reasoning`, kind: 'setting', from, to });
      continue;
    }
    if (own.length > 0 && !lostOnlyProofs(own, turn)) continue;
    const content = restored(message, turn, restoredThoughts, present);
    if (content === undefined) continue;
    mended.set(index, content);
    // Removes reasoning that the client sent in other messages of the turn, because it was restored here.
    for (let other = span.from; own.length > 0 && other < span.to; other += 1) {
      const rest = mended.get(other) ?? messages[other]?.content ?? [];
      if (other !== index && !rest.some(isProved))
        mended.set(
          other,
          rest.filter((block) => !isReasoning(block)),
        );
    }
  }
  if (mended.size === 0) return { losses };
  return { messages: withContents(messages, mended), losses };
}

function withContents(
  messages: readonly Message[],
  contents: ReadonlyMap<number, readonly Block[]>,
): readonly Message[] {
  return messages.flatMap((message, index) => {
    const content = contents.get(index);
    if (content === undefined) return message;
    return content.length === 0 ? [] : { ...message, content };
  });
}

const none: ReadonlySet<string> = new Set();

function proofValues(messages: readonly Message[]): ReadonlySet<string> {
  const values = messages.flatMap(({ content }) =>
    content.flatMap((block) => ('proof' in block && block.proof !== undefined ? block.proof.value : [])),
  );
  return new Set(values);
}

/** Returns true when the client sent the unchanged text of the reasoning, and not its proofs. */
function lostOnlyProofs(own: readonly ReasoningBlock[], turn: Turn): boolean {
  if (proofsOf(turn).length === 0) return false;
  const words = turn.thoughts.map(({ text }) => text).join('');
  return words === '' || own.map(({ text }) => text).join('') === words;
}

/** Returns the turns of a call's history without a proof that are stored, oldest first. Turns that are not stored are not decoded. */
export function forgottenIn(call: Call, memory: Memory, owner: string): Promise<readonly Forgotten[]> {
  return forgottenTurns(
    chatOutlineOf(call).messages,
    memory,
    () => ({ owner, opening: openingOf(call as Call, owner) }),
    () => conversationOf(call as Call),
  );
}

/** Does the same as {@link forgottenIn} for messages that may be those of an outline. `identify` and `conversation` are called only when needed. */
export async function forgottenTurns(
  messages: readonly Message[],
  memory: Memory,
  identify: () => ConversationId,
  conversation: () => Readable,
): Promise<readonly Forgotten[]> {
  const bare = bareTurns(messages);
  if (bare.length === 0) return [];
  const conversationId = identify();
  const calls = bare.flatMap((one) => one.calls.map((call) => ({ call, index: one.span.from })));
  const known = await memory.readCalls(conversationId, calls);
  if (known.size === 0) return [];
  const before = new Before(conversation);
  const candidates = bare.flatMap((one) => {
    const keys = one.calls.flatMap((call) => {
      const kept = known.get(call.id);
      return kept === undefined
        ? []
        : keysBehind(kept, conversationId.owner, call, before.digest(one.span.from));
    });
    return keys.length === 0 ? [] : [{ ...one, keys }];
  });
  const entries = await memory.read(
    candidates.flatMap(({ keys }) => keys),
    true,
  );
  for (const [key, value] of await memory.read(seen(entries), true)) entries.set(key, value);
  return candidates.flatMap(({ keys, ...one }) => {
    const turn = turnOf(keys, entries);
    return turn === undefined ? [] : [{ ...one, turn }];
  });
}

/** Returns the keys under which the turn of a call may be stored, the likeliest first. */
function keysBehind(kept: Kept, owner: string, call: ToolCallBlock, before: string): readonly string[] {
  if ('maker' in kept) return [];
  const see = 'see' in kept ? kept.see : idKey(owner, call);
  if (kept.where === undefined || kept.where === whereOf(call, before)) return [see];
  const exact = exactKey(owner, call, before);
  return isByChance(call) ? [exact, see] : [exact];
}

function bareTurns(messages: readonly Message[]): readonly Bare[] {
  const found: Bare[] = [];
  for (const span of turnsOf(messages)) {
    if (isProvedTurn(messages, span)) continue;
    for (let index = span.from; index < span.to; index += 1) {
      const calls = messages[index]?.content.filter((block) => block.type === 'tool-call') ?? [];
      if (calls.length > 0) found.push({ index, calls, span });
    }
  }
  return found;
}

function isProvedTurn(messages: readonly Message[], { from, to }: Bare['span']): boolean {
  for (let index = from; index < to; index += 1)
    if (messages[index]?.content.some(isProved) === true) return true;
  return false;
}

/** Yields the ranges of consecutive messages of the model. */
function* turnsOf(messages: readonly Message[]): Generator<Bare['span']> {
  let from = 0;
  while (from < messages.length) {
    let to = from;
    while (messages[to]?.role === 'assistant') to += 1;
    if (to > from) yield { from, to };
    from = to + 1;
  }
}

/** Returns the keys that entries lead to. */
function seen(entries: ReadonlyMap<string, Kept>): ReadonlySet<string> {
  return new Set([...entries.values()].flatMap((value) => ('see' in value ? [value.see] : [])));
}

function turnOf(keys: readonly string[], entries: ReadonlyMap<string, Kept>): Turn | undefined {
  for (const key of keys) {
    const entry = entries.get(key);
    const kept = entry !== undefined && 'see' in entry ? entries.get(entry.see) : entry;
    if (kept !== undefined && 'turn' in kept) return kept.turn;
  }
  return undefined;
}
