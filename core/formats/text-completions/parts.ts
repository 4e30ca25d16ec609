/** Prompts of text completions: texts or tokens, one or a list, as blocks of a user message and back. */
import { missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import type { Block, Message } from '../../model/chat.ts';
import type { JsonValue } from '../../model/json.ts';
import { given } from '../_shared/check.ts';
import { formatName } from './wire.ts';

/** Prompt: text, or the tokens of a text. */
export type Prompt = string | readonly number[];

/** Returns the prompts of a body, and whether they were written as a list. Throws 400 naming `prompt`. */
export function readPrompts(value: JsonValue | undefined): {
  readonly prompts: readonly Prompt[];
  readonly listed: boolean;
} {
  if (!given(value)) throw missingValue('prompt');
  if (typeof value === 'string') return { prompts: [value], listed: false };
  if (!Array.isArray(value)) throw wrongType('prompt', 'a string or an array');
  const list = value as readonly JsonValue[];
  if (list.length === 0) throw wrongValue('prompt', 'a list of at least one prompt');
  if (typeof list[0] === 'number') return { prompts: [tokens(list, 'prompt')], listed: false };
  return { prompts: list.map((item, index) => readItem(item, `prompt[${index}]`)), listed: true };
}

function readItem(item: JsonValue, at: string): Prompt {
  if (typeof item === 'string') return item;
  if (Array.isArray(item)) return tokens(item as readonly JsonValue[], at);
  throw wrongType(at, 'a string or an array of tokens');
}

function tokens(list: readonly JsonValue[], at: string): readonly number[] {
  if (list.length === 0) throw wrongValue(at, 'a list of at least one token');
  list.forEach((token, index) => {
    if (typeof token !== 'number' || !Number.isInteger(token))
      throw wrongType(`${at}[${index}]`, 'an integer');
  });
  return list as readonly number[];
}

/** Returns the prompts as a user turn with a block for each. */
export function promptMessage(prompt: JsonValue | undefined): Message {
  const { prompts, listed } = readPrompts(prompt);
  const content = prompts.map((one, index) => promptBlock(one, listed ? `prompt[${index}]` : 'prompt'));
  return { role: 'user', content, ...(listed ? {} : { plain: true }), at: 'prompt' };
}

function promptBlock(prompt: Prompt, at: string): Block {
  return typeof prompt === 'string'
    ? { type: 'text', text: prompt, at }
    : { type: 'opaque', format: formatName, value: { tokens: prompt }, at };
}

/** Returns the prompt of a block; undefined for blocks of other kinds. */
export function promptOf(block: Block): Prompt | undefined {
  if (block.type === 'text') return block.text;
  if (block.type !== 'opaque' || block.format !== formatName) return undefined;
  return Array.isArray(block.value.tokens) ? (block.value.tokens as readonly number[]) : undefined;
}

/** Returns true for the turn of a client of this format that wrote its prompts as a list. */
export function isListed(message: Message, from: string): boolean {
  return from === formatName && message.plain !== true;
}
