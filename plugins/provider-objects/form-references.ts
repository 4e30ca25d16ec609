/** Checks that a form which streams to a provider names no object of another API key. */
import { GatewayError, HeldBytes } from 'sluice';
import type { ObjectFormat } from './collections.ts';
import { referencesInField, type Reference } from './references.ts';

/** Throws what is wrong with references: objects that the caller does not own, or that another provider account keeps. */
export type CheckReferences = (references: readonly Reference[]) => Promise<void>;

/**
 * Checks what the text fields of a form refer to while the form passes by. The boundary behind a field is not sent before its references
 * are checked, so that a provider never has a complete form that names an object of another key.
 */
export class FormReferences {
  readonly #format: ObjectFormat;
  readonly #check: CheckReferences;
  #name = '';
  readonly #text = new HeldBytes();
  #found: readonly Reference[] = [];

  constructor(format: ObjectFormat, check: CheckReferences) {
    this.#format = format;
    this.#check = check;
  }

  /** Begins a field. Throws 400 for a file under the name of a reference, because providers may read its bytes as the id. */
  begin(name: string, isFile: boolean): void {
    this.#name = name;
    this.#text.take();
    if (isFile && referencesInField(name, 'x', this.#format).length > 0)
      throw new GatewayError('invalid_value', `${name.slice(0, 100)} must be a text, not a file.`, {
        param: name.slice(0, 100),
      });
  }

  push(bytes: Buffer): void {
    this.#text.push(bytes);
  }

  /** Ends a text field. */
  end(): void {
    const text = this.#text.take().toString();
    this.#found = [...this.#found, ...referencesInField(this.#name, text, this.#format)];
  }

  /** Resolves when all references of the fields that have ended are checked; undefined where there are none. */
  settled(): Promise<void> | undefined {
    const found = this.#found;
    this.#found = [];
    return found.length === 0 ? undefined : this.#check(found);
  }
}
