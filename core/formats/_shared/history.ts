/** Reads and writes the message history of Messages and Converse, whose messages are lists of blocks by two alternating roles. */
import { wrongValue } from '../../sdk/errors.ts';
import type { Block, ChatRequest, Message } from '../../model/chat.ts';
import type { JsonObject, JsonValue, MutableObject } from '../../model/json.ts';
import { given, readObjects, requiredString } from './check.ts';
import { Leftovers, putBack } from './extra.ts';
import { defined, setOf } from './fields.ts';
import { reportForeign } from './foreign.ts';
import { joinedTurns } from './join-turns.ts';
import { orderTurns, userTurn, type Turn, type TurnWords } from './turn-order.ts';
import { requestPathOf, refuse, type Writing } from './writing.ts';

/** Functions by which such a format encodes a history. */
export interface HistoryWords<W extends Writing> extends Omit<TurnWords, 'drop'> {
  /** A block on the wire, and what goes with it; nothing for one that is left out. */
  readonly blocks: (block: Block, writing: W) => readonly JsonObject[];
  /** The blocks of a message that is marked as a whole: the mark stands on the last of them, or behind it. */
  readonly marked: (message: Message, blocks: readonly JsonObject[], writing: W) => readonly JsonObject[];
  /** Wire form of the instructions before the first turn; undefined if there are none. */
  readonly system: (entries: readonly Message[], blocks: readonly JsonObject[]) => JsonValue | undefined;
  /** The content of a message that a client of this format wrote. */
  readonly encodeContent: (message: Message, blocks: readonly JsonObject[]) => JsonValue;
  /** A turn of a client of another format. */
  readonly turn: (turn: Turn) => JsonObject;
}

/** `system` and `messages` of the wire. Absent if there are none. */
export interface WrittenHistory {
  readonly system?: JsonValue;
  readonly messages?: readonly JsonObject[];
}

/** Marks instructions that stood among the messages. */
const amongMessages = '$message';

const messageFields = setOf('role content');

/**
 * Returns the messages of a request in such a format; `content` reads that of one. System messages before the first other one are instructions too:
 * where they stood is a spelling of the format. Throws 400 with the path.
 */
export function readMessages(
  list: readonly JsonValue[] | undefined,
  format: string,
  content: (
    value: JsonValue | undefined,
    path: string,
    message: JsonObject,
  ) => Pick<Message, 'content' | 'plain'>,
): { readonly leading: readonly Message[]; readonly rest: readonly Message[] } {
  if (list?.length === 0) throw wrongValue('messages', 'a list of at least one message');
  const messages = readObjects(list, 'messages', (value, at): Message => {
    const role = requiredString(value.role, `${at}.role`);
    if (role !== 'user' && role !== 'assistant' && role !== 'system')
      throw wrongValue(`${at}.role`, '"user", "assistant" or "system"');
    const left = new Leftovers(format, true).take(value, messageFields);
    const encoded = content(value.content, `${at}.content`, value);
    if (!given(value.content)) left.put('$content', 'absent');
    return { role, ...encoded, ...left.extra(), at };
  });
  const first = messages.findIndex(({ role }) => role !== 'system');
  const count = first < 0 ? messages.length : first;
  const leading = messages.slice(0, count).map((message) => ({
    ...message,
    extra: { [format]: { ...message.extra?.[format], [amongMessages]: true } },
  }));
  return { leading, rest: messages.slice(count) };
}

/** Writes messages in the words of a format. */
export class HistoryWriter<W extends Writing> {
  readonly #words: HistoryWords<W>;
  readonly #writing: W;

  constructor(words: HistoryWords<W>, writing: W) {
    this.#words = words;
    this.#writing = writing;
  }

  /** Returns the instructions and the history: as they were for a client of this format, put in the provider's order for any other. */
  write(request: ChatRequest): WrittenHistory {
    const { native, format, target } = this.#writing;
    for (const message of [...request.system, ...request.messages])
      reportForeign(message.extra, format, message.at, target.drop);
    if (native) return this.#asWritten(request);
    const system = this.#system(request.system);
    const turns = joinedTurns(request).map((message) => this.#turn(message));
    const ordered = orderTurns(turns, { ...this.#words, drop: target.drop });
    if (ordered.length > 0 || system === undefined)
      return { ...defined({ system }), messages: ordered.map((turn) => this.#words.turn(turn)) };
    // If there are only instructions, they are sent as a user turn.
    target.drop(`${requestPathOf(request.system.at(-1) ?? {})}.role`);
    return { messages: [{ role: 'user', content: system }] };
  }

  #asWritten(request: ChatRequest): WrittenHistory {
    const { format } = this.#writing;
    const isMessage = ({ extra }: Message): boolean => extra?.[format]?.[amongMessages] === true;
    const system = this.#system(request.system.filter((entry) => !isMessage(entry)));
    const written = [...request.system.filter(isMessage), ...request.messages];
    const messages = written.flatMap((message) => this.#message(message));
    return { ...defined({ system }), ...(written.length === 0 ? {} : { messages }) };
  }

  /** Returns the original message; nothing when no part of it may be sent. */
  #message(message: Message): readonly JsonObject[] {
    const { format, target } = this.#writing;
    if (message.role === 'system' && target.traits.midSystem === false) {
      if (message.content.length > 0) return [this.#words.turn(this.#wrapped(message))];
      target.drop(requestPathOf(message));
      return [];
    }
    const blocks = this.#content(message);
    if (blocks.length === 0 && message.content.length > 0) return [];
    const role = message.role === 'tool' ? 'user' : message.role;
    const own = message.extra?.[format] ?? {};
    const wire: MutableObject = { role };
    if (own.$content !== 'absent') wire.content = this.#words.encodeContent(message, blocks);
    putBack(wire, own);
    return [wire];
  }

  #system(entries: readonly Message[]): JsonValue | undefined {
    const { native } = this.#writing;
    const blocks = entries.flatMap((entry) => (native ? this.#content(entry) : this.#instructions(entry)));
    return entries.length === 0 || (blocks.length === 0 && !native)
      ? undefined
      : this.#words.system(entries, blocks);
  }

  /** Returns a message's blocks. */
  #content(message: Message): readonly JsonObject[] {
    const writing = this.#writing;
    const blocks = message.content.flatMap((block): readonly JsonObject[] => {
      if (writing.native || !isMisplaced(block, message.role)) return this.#words.blocks(block, writing);
      refuse(block, `a ${block.type} part of the ${message.role}`, writing);
      return [];
    });
    return message.cache === undefined || blocks.length === 0
      ? blocks
      : this.#words.marked(message, blocks, writing);
  }

  /** Returns the blocks of instructions. Only text may instruct. */
  #instructions(message: Message): readonly JsonObject[] {
    const content = message.content.filter((block) => {
      const allowed = block.type === 'text' || block.type === 'refusal';
      if (!allowed) refuse(block, `a ${block.type} in instructions`, this.#writing);
      return allowed;
    });
    return this.#content({ ...message, content });
  }

  /** Returns a system message for a model that takes none in the middle: the user's words, marked as what they are. */
  #wrapped(message: Message): Turn {
    const at = requestPathOf(message);
    this.#writing.target.drop(`${at}.role`);
    const texts = this.#instructions(message).flatMap((block) => this.#words.textIn(block) ?? []);
    const text = texts.join('\n');
    return userTurn(at, text === '' ? [] : [this.#words.text(`<system>${text}</system>`)]);
  }

  #turn(message: Message): Turn {
    const turn = { at: requestPathOf(message), calls: [], results: [], plain: message.plain === true };
    switch (message.role) {
      case 'system':
        return this.#writing.target.traits.midSystem === false
          ? this.#wrapped(message)
          : { ...turn, role: 'system', content: this.#instructions(message) };
      case 'assistant': {
        const calls = message.content.filter((block) => block.type === 'tool-call').map(({ id }) => id);
        return { ...turn, role: 'assistant', content: this.#content(message), calls };
      }
      default: {
        const { content } = message;
        const results = content
          .filter((block) => block.type === 'tool-result')
          .map((block) => ({
            id: block.id,
            at: requestPathOf(block),
            wire: this.#words.blocks(block, this.#writing),
          }));
        const rest = content.filter((block) => block.type !== 'tool-result');
        return { ...turn, role: 'user', content: this.#content({ ...message, content: rest }), results };
      }
    }
  }
}

/** Returns true for a block in a wrong role: media and tool results of the model, and tool calls of others. */
function isMisplaced(block: Block, role: Message['role']): boolean {
  if (role === 'assistant') return 'source' in block || block.type === 'tool-result';
  return block.type === 'tool-call';
}
