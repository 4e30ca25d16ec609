import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { ReplyWords } from '../../sdk/format.ts';
import { given } from '../_shared/check.ts';
import { isText } from '../_shared/fields.ts';
import { numberOf } from './chunks.ts';
import { InlineThinking } from './inline-thinking.ts';

/** Maximum number of choices of one response in which reasoning is separated from text. */
const mostAnswers = 128;

/**
 * Puts replies of completions into the words of the official API: reasoning under its usual name, thinking that stands between tags in the text, and
 * reasons why an answer ended. Undefined for models whose replies need none of that.
 */
export function replyWords(traits: ModelTraits, request: JsonObject): ReplyWords | undefined {
  const { reasoningField, finishReasons = {}, inlineThinking } = traits;
  // A client that sets the form of reasoning gets it in that form: https://console.groq.com/docs/reasoning
  const isInline = inlineThinking === true && !given(request.reasoning_format);
  const words = Object.entries(finishReasons);
  if (reasoningField !== 'reasoning' && words.length === 0 && !isInline) return undefined;
  const marks = [
    ...(reasoningField === 'reasoning' ? ['"reasoning":"', '"reasoning": "'] : []),
    ...words.flatMap(([word]) => [`"finish_reason":"${word}"`, `"finish_reason": "${word}"`]),
  ];
  const answers = typeof request.n === 'number' ? request.n : 1;
  return new CompletionWords(marks, reasoningField === 'reasoning', new Map(words), isInline ? answers : 0);
}

class CompletionWords implements ReplyWords {
  readonly marks: readonly string[];
  readonly #renames: boolean;
  readonly #reasons: ReadonlyMap<string, string | null>;
  /** Answers whose text may still be thinking. */
  #thinking: number;
  readonly #heads = new Map<number, InlineThinking>();
  /** Answers that have come behind their thinking. */
  readonly #read = new Set<number>();

  constructor(
    marks: readonly string[],
    renames: boolean,
    reasons: ReadonlyMap<string, string | null>,
    thinking: number,
  ) {
    this.marks = marks;
    this.#renames = renames;
    this.#reasons = reasons;
    this.#thinking = thinking;
  }

  get readsAll(): boolean {
    return this.#thinking > 0;
  }

  frame(chunk: JsonObject): JsonObject {
    return this.#respelled(chunk, 'delta', false);
  }

  whole(body: JsonObject): JsonObject {
    return this.#respelled(body, 'message', true);
  }

  #respelled(body: JsonObject, holder: 'delta' | 'message', isWhole: boolean): JsonObject {
    if (!Array.isArray(body.choices)) return body;
    const before = body.choices as readonly JsonValue[];
    const choices = before.map((choice) =>
      isObject(choice) ? this.#choice(choice, holder, isWhole) : choice,
    );
    return choices.some((choice, index) => choice !== before[index]) ? { ...body, choices } : body;
  }

  #choice(choice: JsonObject, holder: 'delta' | 'message', isWhole: boolean): JsonObject {
    const { finish_reason: finish } = choice;
    const reason = typeof finish === 'string' ? this.#reasons.get(finish) : undefined;
    const message = isObject(choice[holder]) ? choice[holder] : undefined;
    const named = message && this.#renames ? withUsualName(message) : message;
    const isOver = isWhole || isText(finish);
    const parted = named && this.readsAll ? this.#parted(named, numberOf(choice), isOver) : named;
    if (reason === undefined && parted === message) return choice;
    return {
      ...choice,
      ...(parted === undefined ? {} : { [holder]: parted }),
      ...(reason === undefined ? {} : { finish_reason: reason }),
    };
  }

  /** Tells the thinking at the head of an answer from its text. */
  #parted(message: JsonObject, number: number, isOver: boolean): JsonObject {
    if (this.#read.has(number) || this.#heads.size > mostAnswers) return message;
    let head = this.#heads.get(number);
    if (head === undefined) this.#heads.set(number, (head = new InlineThinking()));
    const { content } = message;
    const runs = [...(isText(content) ? head.push(content) : []), ...(isOver ? head.flush() : [])];
    if (isOver || head.isBehind) {
      this.#thinking -= 1;
      this.#read.add(number);
    }
    const textOf = (kind: 'reasoning' | 'text'): string =>
      runs.flatMap((run) => (run.kind === kind ? [run.text] : [])).join('');
    const reasoning = textOf('reasoning');
    const text = textOf('text');
    if (reasoning === '' && text === (isText(content) ? content : '')) return message;
    const { content: _, ...rest } = message;
    const parted: MutableObject = { ...rest };
    if (reasoning !== '')
      parted.reasoning_content = `${isText(rest.reasoning_content) ? rest.reasoning_content : ''}${reasoning}`;
    if (text !== '' || 'content' in message) parted.content = text === '' && content !== '' ? null : text;
    return parted;
  }
}

/** Returns the reasoning of a message or a delta under the name that clients read. */
function withUsualName(message: JsonObject): JsonObject {
  if (typeof message.reasoning !== 'string' || given(message.reasoning_content)) return message;
  const { reasoning_content: _, ...rest } = message;
  return Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name === 'reasoning' ? 'reasoning_content' : name, value]),
  ) as JsonObject;
}
