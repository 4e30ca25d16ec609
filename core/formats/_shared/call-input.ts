import { ArgumentsText } from '../../json/arguments.ts';

/** The beginning of an object with one text in it. */
const wrapping = '{"input":"';

/**
 * The input of a call in formats whose calls take an object. `verbatim`: a provider of the same format wrote it, right or wrong; `object`: it
 * must be an object's text in the end; `free-text`: it rides as the one member of an object.
 */
export class CallInput {
  readonly #kind: 'verbatim' | 'object' | 'free-text';
  readonly #sent = new ArgumentsText();
  #begun = false;

  constructor(kind: 'verbatim' | 'object' | 'free-text') {
    this.#kind = kind;
  }

  /** Returns the text that is certain so far; undefined if there is none. */
  push(piece: string): string | undefined {
    if (this.#kind === 'verbatim') return piece;
    if (this.#kind === 'object') {
      const text = this.#sent.push(piece);
      return text === '' && piece !== '' ? undefined : text;
    }
    const text = JSON.stringify(piece).slice(1, -1);
    const emitted = this.#begun ? text : wrapping + text;
    this.#begun = true;
    return emitted;
  }

  /** Returns the remaining text. */
  end(): string {
    if (this.#kind === 'verbatim') return '';
    if (this.#kind === 'object') return this.#sent.end();
    return `${this.#begun ? '' : wrapping}"}`;
  }
}
