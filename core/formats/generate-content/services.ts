import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { objectsOf } from '../_shared/fields.ts';

/** Maximum number of queries of one reply that are counted. */
const maxQueries = 1000;

/** Counts the queries of searches in the chunks of one reply, each once: chunks may repeat those of earlier ones. */
export class SearchCounter {
  readonly #queries = new Set<string>();

  /** Reads a chunk or a whole reply. */
  read({ candidates }: JsonObject): void {
    for (const { index, groundingMetadata: grounding } of objectsOf(candidates))
      if (isObject(grounding) && Array.isArray(grounding.webSearchQueries))
        for (const query of grounding.webSearchQueries)
          if (this.#queries.size < maxQueries) this.#queries.add(`${String(index ?? 0)} ${String(query)}`);
  }

  /** Returns usage with what was counted so far. */
  counted(usage: Usage): Usage {
    const { size } = this.#queries;
    return size === 0 ? usage : { ...usage, units: { services: { 'web-search': size } } };
  }
}
