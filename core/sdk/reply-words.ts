import type { JsonObject } from '../model/json.ts';

/** Puts one reply of a provider into the words that clients of its format know. Holds the state of that reply. */
export interface ReplyWords {
  /** Texts of which one stands in each frame, or whole reply, that has to be read. */
  readonly marks: readonly string[];
  /** True while each frame has to be read. */
  readonly readsAll: boolean;
  /** Returns the frame of a stream in those words: the same object where nothing changes. */
  frame(body: JsonObject): JsonObject;
  /** Returns the same of a whole reply. */
  whole(body: JsonObject): JsonObject;
}
