import { hash } from 'node:crypto';
import type { Block, JsonObject, Message } from 'sluice';
import type { Loss, ReasoningBlock, Target, ToolCallBlock } from 'sluice/internal';
import { turnKey, type Kept, type Memory } from './memory.ts';
import { fits, proofsOf, type CalledTool, type Thought, type Turn } from './turn.ts';

/** What a history becomes. */
export interface Recalled {
  /** Undefined: nothing had to be put back. */
  readonly messages?: readonly Message[];
  /** Turns whose reasoning is known and may not go to this target, in the client's words. */
  readonly losses: readonly Loss[];
}

/** Where the request goes, and whose it is. */
export interface RecallOptions {
  readonly owner: string;
  readonly target: Target;
  /** The client's format, and the one that is spoken to the target. */
  readonly from: string;
  readonly to: string;
}

/** A message that calls tools, in a turn that came without a proof. */
interface Bare {
  readonly index: number;
  readonly message: Message;
  readonly keys: readonly string[];
  /** The turn's neighbouring messages, from the first to behind the last: some formats write each piece of a turn as one. */
  readonly span: { readonly from: number; readonly to: number };
}

/** One of which is known what it was. */
export interface Forgotten extends Bare {
  readonly turn: Turn;
}

/**
 * Puts the model's reasoning back into the turns that lost it on their way through a client. What the client sent itself stays; where it
 * kept the words and lost only their proof, the proof comes back with the words.
 */
export async function recall(
  messages: readonly Message[],
  memory: Memory,
  options: RecallOptions,
): Promise<Recalled> {
  const { target, from, to } = options;
  const losses: Loss[] = [];
  const told = new Map<Turn, number>();
  const mended = new Map<number, readonly Block[]>();
  const forgotten = await forgottenTurns(messages, memory, options.owner);
  const present = forgotten.length === 0 ? none : proofValues(messages);
  for (const { index, message, turn, span } of forgotten) {
    const own = messages.slice(span.from, span.to).flatMap(({ content }) => content.filter(isReasoning));
    if (!fits(turn, target, to)) {
      if (told.has(turn) || own.length > 0) continue;
      told.set(turn, 0);
      losses.push({ path: `${message.at ?? 'messages'}.reasoning`, kind: 'setting', from, to });
      continue;
    }
    if (own.length > 0 && !lostOnlyProofs(own, turn)) continue;
    const content = restored(message, turn, told, present);
    if (content === undefined) continue;
    mended.set(index, content);
    // What the client kept of the same words elsewhere in the turn is what has come back.
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

/** True where the client kept the words as they were, or none, and not the proofs that belong to them. */
function lostOnlyProofs(own: readonly ReasoningBlock[], turn: Turn): boolean {
  if (proofsOf(turn).length === 0) return false;
  const words = turn.thoughts.map(({ text }) => text).join('');
  return words === '' || own.map(({ text }) => text).join('') === words;
}

/** The turns that came without a proof and are known, oldest first. `words`: the same messages with their texts, where these have none. */
export async function forgottenTurns(
  messages: readonly Message[],
  memory: Memory,
  owner: string,
  words: () => readonly Message[] = () => messages,
): Promise<readonly Forgotten[]> {
  const guessable = new Set<string>();
  const bare = bareTurns(messages, owner, guessable, new Asked(words));
  if (bare.length === 0) return [];
  const entries = await memory.read(
    bare.flatMap(({ keys }) => keys),
    guessable,
  );
  if (entries.size === 0) return [];
  for (const [key, value] of await memory.read(turnsBehind(entries))) entries.set(key, value);
  return bare.flatMap((found) => {
    const turn = turnOf(found.keys, entries);
    return turn === undefined ? [] : [{ ...found, turn }];
  });
}

function bareTurns(
  messages: readonly Message[],
  owner: string,
  guessable: Set<string>,
  asked: Asked,
): readonly Bare[] {
  const found: Bare[] = [];
  for (const span of turnsOf(messages)) {
    const turn = messages.slice(span.from, span.to);
    if (turn.some(({ content }) => content.some(isProved))) continue;
    turn.forEach((message, offset) => {
      const calls = message.content.filter((block) => block.type === 'tool-call');
      if (calls.length === 0) return;
      const keys = calls.map((call) => {
        const unique = uniqueKey(owner, call);
        if (unique !== undefined) return unique;
        const key = keyOfCall(owner, call, asked, span.from);
        guessable.add(key);
        return key;
      });
      found.push({ index: span.from + offset, message, keys, span });
    });
  }
  return found;
}

/** Runs of the model's messages. */
function* turnsOf(messages: readonly Message[]): Generator<Bare['span']> {
  let from = 0;
  while (from < messages.length) {
    let to = from;
    while (messages[to]?.role === 'assistant') to += 1;
    if (to > from) yield { from, to };
    from = to + 1;
  }
}

/**
 * The key under which a call's turn is kept; ids that count from one need the conversation before the message `index` beside them.
 */
export function keyOfCall(owner: string, call: IdOfCall, asked: Asked, index: number): string {
  return uniqueKey(owner, call) ?? turnKey(owner, call.id, `${call.name} ${asked.before(index)}`);
}

/** The key of a call whose id is no other conversation's; undefined where that cannot be said of it. */
function uniqueKey(owner: string, call: IdOfCall): string | undefined {
  const { id, name } = call;
  const known = knownKeys.get(id);
  if (known !== undefined && known.name === name && known.owner === owner) return known.key;
  const key = isUnique(call) ? turnKey(owner, id) : undefined;
  if (id.length + name.length <= longestKnown) {
    if (knownKeys.size >= mostKnown) knownKeys.clear();
    knownKeys.set(id, { owner, name, key });
  }
  return key;
}

/**
 * Keys that were found lately: each turn of a conversation brings the calls of all turns before. To find 142 of them anew takes 0.3 ms,
 * a fifth of what such a request costs in all.
 */
const knownKeys = new Map<
  string,
  { readonly owner: string; readonly name: string; readonly key: string | undefined }
>();
const mostKnown = 10_000;
/** Characters. */
const longestKnown = 200;

type IdOfCall = Pick<CalledTool, 'id' | 'name'>;

/** True for an id that is random enough to be no other conversation's: it holds a run of letters and digits besides the tool's name. */
function isUnique({ id, name }: IdOfCall): boolean {
  const runs = id.replace(name, ' ').match(/[A-Za-z0-9]{8,}/g);
  return runs?.some((run) => /\d/.test(run) && /[A-Za-z]/.test(run)) === true;
}

/** Digests of what the user had said before a message. Ask in the order of the messages. */
export class Asked {
  readonly #words: () => readonly Message[];
  #next = 0;
  #digest = '';

  /** `words` gives the messages when somebody asks. */
  constructor(words: () => readonly Message[]) {
    this.#words = words;
  }

  before(index: number): string {
    const messages = this.#words();
    for (; this.#next < index; this.#next += 1) {
      const message = messages[this.#next];
      if (message?.role !== 'user') continue;
      for (const block of message.content)
        if (block.type === 'text') this.#digest = hash('sha256', this.#digest + block.text, 'base64url');
    }
    return this.#digest;
  }
}

function isProved(block: Block): boolean {
  return 'proof' in block && block.proof !== undefined;
}

function isReasoning(block: Block): block is ReasoningBlock {
  return block.type === 'reasoning';
}

function turnsBehind(entries: ReadonlyMap<string, Kept>): ReadonlySet<string> {
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

/**
 * A message's content with its reasoning, undefined when nothing is missing. `told` counts the thoughts that earlier messages of a split
 * turn got; a proof that is present elsewhere does not come twice.
 */
function restored(
  message: Message,
  turn: Turn,
  told: Map<Turn, number>,
  present: ReadonlySet<string>,
): readonly Block[] | undefined {
  const content: Block[] = [];
  let next = told.get(turn) ?? 0;
  let missing = 0;
  const tell = (ready: (thought: Thought) => boolean): void => {
    for (
      let thought = turn.thoughts[next];
      thought !== undefined && ready(thought);
      thought = turn.thoughts[next]
    ) {
      next += 1;
      if (thought.proof !== undefined && present.has(thought.proof.value)) continue;
      content.push(blockOf(thought, message));
      missing += 1;
    }
  };
  const calls = message.content.filter((block) => block.type === 'tool-call');
  const first = calls.reduce((least, { id }) => Math.min(least, placeOf(id, turn)), Infinity);
  for (const block of message.content) {
    if (isReasoning(block)) continue;
    if (block.type === 'tool-call') {
      tell((thought) => thought.calls <= placeOf(block.id, turn));
      content.push(proved(block, turn));
    } else {
      tell((thought) => thought.calls <= first && !thought.spoken);
      content.push(block);
    }
  }
  if (calls.some(({ id }) => placeOf(id, turn) === turn.calls.length - 1)) tell(() => true);
  told.set(turn, next);
  return missing > 0 || content.some(isProved) ? content : undefined;
}

/** The number of a call in its turn; a call that the turn did not make stands before all. */
function placeOf(id: string, turn: Turn): number {
  return placesOf(turn).get(id) ?? 0;
}

/** The first call of each id in a turn. A turn may come back in as many messages as it has calls. */
function placesOf(turn: Turn): ReadonlyMap<string, number> {
  let places = allPlaces.get(turn);
  if (places === undefined) {
    const found = new Map<string, number>();
    turn.calls.forEach(({ id }, place) => {
      if (!found.has(id)) found.set(id, place);
    });
    allPlaces.set(turn, (places = found));
  }
  return places;
}

const allPlaces = new WeakMap<Turn, ReadonlyMap<string, number>>();

function blockOf({ text, proof, extra }: Thought, message: Message): Block {
  return {
    type: 'reasoning',
    text,
    at: `${message.at ?? 'messages'}.reasoning`,
    ...(proof === undefined ? {} : { proof }),
    ...(extra === undefined ? {} : { extra }),
  };
}

function proved(block: ToolCallBlock, turn: Turn): ToolCallBlock {
  const place = placesOf(turn).get(block.id);
  const call = place === undefined ? undefined : turn.calls[place];
  if (call?.proof === undefined) return block;
  if (call.beside === undefined) return { ...block, proof: call.proof };
  const own: JsonObject = { ...block.extra?.['chat-completions'], $extra_content: call.beside };
  return { ...block, proof: call.proof, extra: { ...block.extra, 'chat-completions': own } };
}
