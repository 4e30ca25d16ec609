/** The contract of what encrypts the state that clients keep. */
import type { JsonObject } from '../model/json.ts';

/**
 * Encrypts what clients keep and send back: only a gateway on the same database can read it, for the owner it was made for, and nobody can
 * change it.
 *
 * @example
 * const cursor = sealer.seal('my-plugin cursor', call.get(caller)?.id ?? '', { position: 20 });
 */
export interface Sealer {
  /** Returns the text that is safe in JSON and in headers. `purpose` keeps one kind of sealed text from passing for another. */
  seal(purpose: string, owner: string, value: JsonObject): string;
  /** Returns undefined when the text is no seal of this gateway, for this purpose and this owner. */
  open(purpose: string, owner: string, text: string): JsonObject | undefined;
  /** Returns true for text that only a gateway can have made, whether or not this one can open it: it is never a provider's own. */
  made(text: string): boolean;
}
