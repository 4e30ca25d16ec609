import { sumUsage, type GatewayEvent, type Usage } from 'sluice';

/** Most characters of an answer that are kept to go on from. */
const longest = 1024 * 1024;

/**
 * Makes one answer of its parts: one head, blocks numbered through, a text that goes on in the block in which it broke off, and the sum of
 * what was used. Remembers what was said.
 */
export class Parts {
  #text = '';
  /** Something was said that no request can begin with, or more than is kept; or it was all said. */
  #final = false;
  #headed = false;
  /** The text block that is open towards the client. */
  #open: number | undefined;
  #blocks = 0;
  /** The numbers of this part's blocks in the whole answer. */
  #numbers = new Map<number, number>();
  /** This part has not said anything yet, and goes on in the middle of a text. */
  #joins = false;
  /** Blank characters at the end of what was said, which the provider was not shown and may say again. */
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

  /** All that was said, but for blanks at its end: providers refuse a beginning that ends with them. */
  get said(): string {
    return this.#text.trimEnd();
  }

  /** What the current part said it used; undefined when it said nothing about it. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Bytes that the current part has said since it told its usage. */
  get words(): number {
    return this.#words;
  }

  /** Another part follows; `used` is what the one before has used. Gives what has to be said between them. */
  goOn(used: Usage): readonly GatewayEvent[] {
    const { said } = this;
    this.#blanks = this.#text.slice(said.length);
    this.#before = this.#before === undefined ? used : sumUsage(this.#before, used);
    this.#usage = undefined;
    this.#words = 0;
    this.#began = false;
    this.#joins = true;
    this.#numbers = new Map();
    return [{ type: 'usage', usage: this.#before }];
  }

  /** An event of the current part as events of the whole answer. */
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
        // Thinking, calls, media and what only one format knows: nothing of it can be begun with.
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

  /** Blanks that were said already are not said again. */
  #withoutBlanks(text: string): string {
    if (this.#blanks === '' || text === '') return text;
    let same = 0;
    while (same < text.length && same < this.#blanks.length && text[same] === this.#blanks[same]) same += 1;
    this.#blanks = same === text.length ? this.#blanks.slice(same) : '';
    return text.slice(same);
  }

  /** What the part before has left open ends before something else begins. */
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
