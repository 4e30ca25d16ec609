/** Types of the outline of a long JSON body, in which marks replace the long texts. */
import type { JsonObject } from '../../model/json.ts';

/** Positions of the texts that an outline leaves out. */
export interface LeftOutTexts {
  /** Begin and end of each text in the bytes of the body, without quotes, in order. */
  readonly spans: Uint32Array;
  /** Number of texts before the top-level `tools`, and inside of it. */
  readonly beforeTools: number;
  readonly inTools: number;
}

/** JSON object without its long texts. `core/json/outline/marks.ts` reads the marks. */
export interface Outline {
  /** As JSON text. */
  readonly text: string;
  readonly body: JsonObject;
  /** The members in which something was left out. */
  readonly cut: readonly string[];
  /** Bytes of all that was left out, as it was written between its quotes: no fewer than the words have. */
  readonly leftOut: number;
  readonly texts: LeftOutTexts;
  /** False where no member at any depth has a name under which an address of storage may stand. */
  readonly mayNameAddress: boolean;
  /** Begin and end of the value of `model` in the bytes of the body, with quotes. */
  readonly model: { readonly start: number; readonly end: number } | undefined;
}
