import type { JsonObject } from './json.ts';

/** A JSON object without its long texts. */
export interface Outline {
  /** As JSON text. */
  readonly text: string;
  readonly body: JsonObject;
  /** The members in which something was left out. */
  readonly cut: readonly string[];
  /** Bytes of all that was left out, as it was written between its quotes: no fewer than the words have. */
  readonly leftOut: number;
  /** Where the value of `model` stands in the bytes of the whole, quotes included. */
  readonly model: { readonly start: number; readonly end: number } | undefined;
}
