/** Spells tool-call ids and tool names within a provider's limits on characters and length, and restores the client's names in replies. */
import { createHash } from 'node:crypto';

/**
 * Returns a tool-call id that fits a provider's pattern `[A-Za-z0-9_-]{1,64}`. The same id always gives the same spelling, so that calls and
 * results keep matching over turns with no state; ids that already fit stay as they are.
 */
export function spellToolId(id: string, limit = 64): string {
  if (id.length > 0 && id.length <= limit && /^[A-Za-z0-9_-]+$/.test(id)) return id;
  const digest = createHash('sha256').update(id).digest('base64url').slice(0, 16);
  const kept = id.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, limit - 17);
  return `${kept}_${digest}`;
}

/**
 * Tool names in a provider's spelling, reversible for one request: the first tool to claim a spelling keeps it, a name too long or with
 * foreign characters gets a stable short hash.
 */
export class ToolNames {
  #there = new Map<string, string>();
  #back = new Map<string, string>();
  readonly #limit: number;
  readonly #allowed: RegExp;
  readonly #first: RegExp;

  /** `allowed` matches one legal character, `first` a legal first one. */
  constructor(limit = 64, allowed = /[A-Za-z0-9_-]/, first = allowed) {
    this.#limit = limit;
    this.#allowed = allowed;
    this.#first = first;
  }

  /** Returns the provider's spelling of a client's name. */
  there(name: string): string {
    const known = this.#there.get(name);
    if (known !== undefined) return known;
    let spelled = '';
    for (const character of name) spelled += this.#allowed.test(character) ? character : '_';
    if (spelled !== '' && !this.#first.test(spelled.charAt(0))) spelled = `_${spelled}`;
    if (spelled !== name || spelled.length > this.#limit || spelled === '') {
      const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
      spelled = `${spelled.slice(0, this.#limit - 9)}_${digest}`;
    }
    this.#there.set(name, spelled);
    this.#back.set(spelled, name);
    return spelled;
  }

  /** Returns the client's name for a provider's spelling; unknown names come back unchanged. */
  back(spelled: string): string {
    return this.#back.get(spelled) ?? spelled;
  }
}

/**
 * Returns the id of a tool call, or the id with a number where it was given out before: `call_1`, `call_1_2`, `call_1_3`. `given` holds the ids
 * that were given out and how often each was wanted.
 *
 * @example
 * const given = new Map<string, number>();
 * const ids = calls.map(({ id }) => numberedId(id, given));
 */
export function numberedId(id: string, given: Map<string, number>): string {
  let occurrence = given.get(id) ?? 0;
  let fresh = id;
  while (given.has(fresh)) {
    occurrence += 1;
    fresh = `${id}_${occurrence}`;
  }
  given.set(id, Math.max(1, occurrence));
  given.set(fresh, given.get(fresh) ?? 1);
  return fresh;
}
