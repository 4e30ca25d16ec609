import { sumUsage, type GatewayEvent, type Usage } from 'sluice';

/** Maximum number of characters of a response that are kept for its continuation. */
const longest = 1024 * 1024;

/**
 * Makes one answer of its parts: one head, blocks numbered through, a text that goes on in the block in which it broke off, and the sum of
 * what was used. Remembers what was said.
 */
export class Parts {
  #text = '';
  /** True when the response cannot be continued: it has content that no request can begin with, is too long, or is complete. */
  #final = false;
  #headed = false;
  /** Text block that is open towards the client. */
  #open: number | undefined;
  #blocks = 0;
  /** Numbers of this part's blocks in the whole response. */
  #numbers = new Map<number, number>();
  /** True until this part has sent content, where it continues in the middle of a text. */
  #joins = false;
  /** Trailing whitespace of the text, which was not sent to the provider, so that the provider may repeat it. */
  #blanks = '';
  #before: Usage | undefined;
  #usage: Usage | undefined;
  #words = 0;
  #began = false;

  /** True when anything of the current part has come. */
  get began(): boolean {
    return this.#began;
  }

  get canGoOn(): boolean {
    return !this.#final;
  }

  /** Text so far without trailing whitespace, because providers refuse a beginning that ends with it. */
  get text(): string {
    return this.#text.trimEnd();
  }

  /** Usage that the current part has reported; undefined when it has reported none. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Number of bytes of text in the current part since it last reported usage. */
  get words(): number {
    return this.#words;
  }

  /** Begins another part. `used`: usage of the part before. Returns the events between the two parts. */
  goOn(used: Usage): readonly GatewayEvent[] {
    const { text } = this;
    this.#blanks = this.#text.slice(text.length);
    this.#before = this.#before === undefined ? used : sumUsage(this.#before, used);
    this.#usage = undefined;
    this.#words = 0;
    this.#began = false;
    this.#joins = true;
    this.#numbers = new Map();
    return [{ type: 'usage', usage: this.#before }];
  }

  /** Converts an event of the current part into events of the whole response. */
  take(event: GatewayEvent): readonly GatewayEvent[] {
    switch (event.type) {
      case 'request':
      case 'attempt':
        return [event];
      case 'loss':
        return this.#before === undefined ? [event] : [];
      case 'head':
        this.#began = true;
        if (this.#headed) return [];
        this.#headed = true;
        return [event];
      case 'usage':
        this.#usage = event.usage;
        this.#words = 0;
        return this.#before === undefined
          ? [event]
          : [{ type: 'usage', usage: sumUsage(this.#before, event.usage) }];
      case 'finish':
        this.#final = true;
        return [...this.#closing(), event];
      case 'text-start':
        return this.#begins(event);
      case 'text-delta':
        return this.#says(event);
      case 'text-end': {
        const block = this.#numberOf(event.block);
        if (block === this.#open) this.#open = undefined;
        if (event.proof !== undefined) this.#final = true;
        return [{ ...event, block }];
      }
      case 'citation':
        return [{ ...event, block: this.#numberOf(event.block) }];
      default:
        // No request can begin with reasoning, tool calls, media or content that only one format has.
        this.#final = true;
        this.#began = true;
        if (!('block' in event)) return [...this.#closing(), event];
        return [
          ...(event.type.endsWith('-start') ? this.#closing() : []),
          { ...event, block: this.#numberOf(event.block) },
        ];
    }
  }

  #begins(event: Extract<GatewayEvent, { readonly type: 'text-start' }>): readonly GatewayEvent[] {
    this.#began = true;
    if (event.choice !== 0) this.#final = true;
    if (this.#joins && this.#open !== undefined) {
      this.#joins = false;
      this.#numbers.set(event.block, this.#open);
      return [];
    }
    this.#open = this.#numberOf(event.block);
    return [{ ...event, block: this.#open }];
  }

  #says(event: Extract<GatewayEvent, { readonly type: 'text-delta' }>): readonly GatewayEvent[] {
    this.#began = true;
    this.#words += Buffer.byteLength(event.text);
    const text = this.#withoutBlanks(event.text);
    if (this.#text.length + text.length <= longest) this.#text += text;
    else this.#final = true;
    return text === '' ? [] : [{ ...event, block: this.#numberOf(event.block), text }];
  }

  /** Removes whitespace that the part before has already sent. */
  #withoutBlanks(text: string): string {
    if (this.#blanks === '' || text === '') return text;
    let same = 0;
    while (same < text.length && same < this.#blanks.length && text[same] === this.#blanks[same]) same += 1;
    this.#blanks = same === text.length ? this.#blanks.slice(same) : '';
    return text.slice(same);
  }

  /** Ends the text block that the part before has left open, before another block begins. */
  #closing(): readonly GatewayEvent[] {
    const block = this.#open;
    if (!this.#joins || block === undefined) return [];
    this.#open = undefined;
    return [{ type: 'text-end', block, choice: 0 }];
  }

  #numberOf(block: number): number {
    let number = this.#numbers.get(block);
    if (number === undefined) {
      number = this.#before === undefined ? block : this.#blocks;
      this.#numbers.set(block, number);
    }
    this.#blocks = Math.max(this.#blocks, number + 1);
    return number;
  }
}
