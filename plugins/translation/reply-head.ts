/** Detects from the beginning of a whole response whether it can pass unchanged. */
import type { Codec } from 'sluice/channel-kit';
import { Nesting } from 'sluice/internal';

/** Number of bytes in which a response shows what it is. */
const clearLength = 4096;

/** The longest name of a member, and the longest text, that are compared. */
const longestName = 64;

/** Lists that every chat reply has, in one format or another, and that none has that is an error. */
const replyLists: ReadonlySet<string> = new Set(['choices', 'content', 'candidates', 'output']);

/** Members that may indicate a failure where none indicates a response. */
const doubtful: ReadonlySet<string> = new Set([
  'error',
  'code',
  'message',
  'msg',
  'detail',
  'errors',
  'base_resp',
  'error_code',
  'error_msg',
  'title',
]);

/** First character of a member's value; texts in full. */
type Value = '{' | '[' | 'null' | 'other' | { readonly text: string };

/**
 * Reads the beginning of a JSON document as it comes, each byte once, until its own members (not those further down) say whether it is a
 * reply that can pass. An error, a list around either, and what does not look like a reply are better read as a whole.
 */
export class ReplyHead {
  readonly #codec: Codec;
  #isReply: boolean | undefined;
  #read = 0;
  readonly #nesting = new Nesting();
  #key: string | undefined;
  #text = '';
  /** True after a comma or a bracket, before a key. */
  #expectsKey = false;
  #members = 0;
  #isDoubtful = false;

  constructor(codec: Codec) {
    this.#codec = codec;
  }

  /** Returns true for a reply; undefined while more has to be seen. */
  push(chunk: Buffer): boolean | undefined {
    const head = chunk.subarray(0, clearLength - this.#read);
    for (let at = 0; at < head.length && this.#isReply === undefined; at += 1) {
      if (this.#nesting.isInString) at = this.#letters(head, at);
      else this.#byte(head, at);
    }
    this.#read += head.length;
    if (this.#isReply === undefined && this.#read >= clearLength) return this.end();
    return this.#isReply;
  }

  /** Returns true for a response that can pass, judged when it ends. */
  end(): boolean {
    this.#isReply ??= this.#members > 0 && !this.#isDoubtful && this.#codec.marks.reply === undefined;
    return this.#isReply;
  }

  #byte(head: Buffer, at: number): void {
    const byte = head[at] ?? 0;
    if (byte === 0x22) this.#text = '';
    else if (byte === 0x7b || byte === 0x5b) this.#value(byte === 0x7b ? '{' : '[');
    else if (byte === 0x2c) this.#expectsKey ||= this.#nesting.depth === 1;
    else if (byte > 0x20 && byte !== 0x3a && byte !== 0x7d && byte !== 0x5d)
      this.#value(byte === 0x6e ? 'null' : 'other');
    const { depth: before } = this.#nesting;
    this.#nesting.read(head, at);
    if (before > 0) return;
    if (byte === 0x5b || byte === 0x22) this.#isReply = false;
    this.#expectsKey = this.#nesting.depth === 1;
  }

  /** Reads a string on. Returns the index of its last quote, or the length of the piece. */
  #letters(head: Buffer, from: number): number {
    const end = this.#nesting.read(head, from);
    if (this.#nesting.depth !== 1) return end;
    const missing = longestName - this.#text.length;
    if (missing > 0) this.#text += head.toString('latin1', from, Math.min(end, from + missing));
    if (this.#nesting.isInString) return end;
    if (this.#expectsKey) {
      this.#key = this.#text;
      this.#expectsKey = false;
    } else this.#value({ text: this.#text });
    return end;
  }

  /** Handles the first byte of a value. The rest of the value is irrelevant. */
  #value(value: Value): void {
    const key = this.#nesting.depth === 1 ? this.#key : undefined;
    if (key === undefined) return;
    this.#key = undefined;
    this.#members += 1;
    this.#isReply = this.#verdict(key, value);
    if (value !== 'null' && doubtful.has(key)) this.#isDoubtful = true;
  }

  #verdict(key: string, value: Value): boolean | undefined {
    const { operation, marks, tellsErrors } = this.#codec;
    const text = typeof value === 'object' ? value.text : undefined;
    if (tellsErrors === true) return true;
    if (key === 'error' && (value === '{' || (text !== undefined && text !== ''))) return false;
    if ((key === 'type' || key === 'object') && text === 'error') return false;
    if (operation !== 'chat' && marks.reply === undefined) return true;
    if (marks.reply !== undefined) return marks.reply.includes(key) ? true : undefined;
    const isReply =
      (value === '[' && replyLists.has(key)) ||
      (key === 'object' && text === 'response') ||
      (key === 'promptFeedback' && value !== 'null');
    return isReply ? true : undefined;
  }
}
