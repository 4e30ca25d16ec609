/** Holds the conversation items of a realtime session of the demo channel, and counts their tokens. */
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { countWords } from './words.ts';

/** Item of a conversation with its text and audio tokens. */
export interface Turn {
  readonly id: string;
  readonly item: JsonObject;
  readonly text: string;
  readonly audioTokens: number;
}

/** Token counts of a conversation. */
export interface ConversationTokens {
  readonly text: number;
  readonly audio: number;
}

/** Items of one session in order. */
export class RealtimeConversation {
  readonly #session: string;
  readonly #turns: Turn[] = [];
  #items = 0;

  constructor(session: string) {
    this.#session = session;
  }

  get last(): Turn | undefined {
    return this.#turns.at(-1);
  }

  find(id: JsonValue | undefined): Turn | undefined {
    return this.#turns.find((turn) => turn.id === id);
  }

  remove(turn: Turn): void {
    this.#turns.splice(this.#turns.indexOf(turn), 1);
  }

  /** Returns the id of the item before. */
  before(turn: Turn): string | null {
    return this.#turns[this.#turns.indexOf(turn) - 1]?.id ?? null;
  }

  /** Adds an item of the client, with a generated id where it has none. */
  addItem(item: JsonObject, text = textOf(item), audioTokens = 0): Turn {
    this.#items += 1;
    const id = typeof item.id === 'string' ? item.id : `item_${this.#session}_${this.#items}`;
    const turn = {
      id,
      item: { ...item, id, object: 'realtime.item', status: 'completed' },
      text,
      audioTokens,
    };
    this.#turns.push(turn);
    return turn;
  }

  /** Returns the beginning of what is answered; `number` is its place among all items. */
  begin(type: string, members: (number: number) => JsonObject): JsonObject {
    this.#items += 1;
    return {
      id: `item_${this.#session}_${this.#items}`,
      object: 'realtime.item',
      type,
      status: 'in_progress',
      ...members(this.#items),
    };
  }

  /** Adds an item of the response. */
  answered(item: JsonObject, text: string): void {
    this.#turns.push({ id: String(item.id), item, text, audioTokens: 0 });
  }

  /** Counts the tokens of the conversation after these instructions. */
  count(instructions: JsonValue | undefined): ConversationTokens {
    let text = countWords(typeof instructions === 'string' ? instructions : '');
    let audio = 0;
    for (const turn of this.#turns) {
      audio += turn.audioTokens;
      if (turn.audioTokens === 0) text += countWords(turn.text);
    }
    return { text, audio };
  }
}

/** Returns the text of an item. */
export function textOf(item: JsonObject): string {
  if (typeof item.output === 'string') return item.output;
  if (!Array.isArray(item.content)) return '';
  return (item.content as readonly JsonValue[])
    .filter(isObject)
    .map((part) => part.text ?? part.transcript)
    .filter((text) => typeof text === 'string')
    .join(' ');
}
