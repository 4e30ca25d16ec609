/** Thoughts between tags in the text. */
const opening = '<think>';
const closing = '</think>';

/** A run of text of one kind. */
export interface Run {
  readonly kind: 'reasoning' | 'text';
  readonly text: string;
}

/** Tells `<think>…</think>` at the head of an answer from the answer, wherever the stream was cut. */
export class InlineThinking {
  #state: 'head' | 'inside' | 'gap' | 'after' = 'head';
  #held = '';

  /** True when all that comes is text. */
  get isBehind(): boolean {
    return this.#state === 'after';
  }

  push(text: string): readonly Run[] {
    if (this.#state === 'after') return [{ kind: 'text', text }];
    this.#held += text;
    return this.#advance();
  }

  /** Returns the text that was held back when the response ended. */
  flush(): readonly Run[] {
    const text = this.#held;
    this.#held = '';
    if (text === '' || this.#state === 'gap') return [];
    return [{ kind: this.#state === 'inside' ? 'reasoning' : 'text', text }];
  }

  #advance(): readonly Run[] {
    const runs: Run[] = [];
    if (this.#state === 'head') this.#readHead();
    if (this.#state === 'inside') this.#readInside(runs);
    if (this.#state === 'gap') this.#readGap();
    if (this.#state === 'after' && this.#held !== '') {
      runs.push({ kind: 'text', text: this.#held });
      this.#held = '';
    }
    return runs;
  }

  #readHead(): void {
    const text = this.#held.trimStart();
    if (text.startsWith(opening)) {
      this.#held = text.slice(opening.length);
      this.#state = 'inside';
    } else if (!opening.startsWith(text)) this.#state = 'after';
  }

  #readInside(runs: Run[]): void {
    const end = this.#held.indexOf(closing);
    if (end >= 0) {
      if (end > 0) runs.push({ kind: 'reasoning', text: this.#held.slice(0, end) });
      this.#held = this.#held.slice(end + closing.length);
      this.#state = 'gap';
      return;
    }
    const keep = tail(this.#held);
    const text = this.#held.slice(0, this.#held.length - keep);
    if (text !== '') runs.push({ kind: 'reasoning', text });
    this.#held = this.#held.slice(this.#held.length - keep);
  }

  /** Skips the blank lines between the reasoning and the answer. */
  #readGap(): void {
    this.#held = this.#held.trimStart();
    if (this.#held !== '') this.#state = 'after';
  }
}

/** Returns the number of characters at the end that may begin the closing tag. */
function tail(text: string): number {
  for (let length = Math.min(closing.length - 1, text.length); length > 0; length -= 1) {
    if (closing.startsWith(text.slice(text.length - length))) return length;
  }
  return 0;
}
