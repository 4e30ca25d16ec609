/** Parts of requests and responses that belong to one format: members that only it knows, proofs of reasoning, and dropped fields. */
import type { JsonObject } from './json.ts';

/**
 * Members that only one format knows, by format name: unknown fields, vendor options, spellings. Only the codec of that format reads or
 * writes its entry; every other encoder reports it as dropped.
 *
 * @example
 * const own = request.extra?.['embeddings']?.['dimensions_mode'];
 */
export interface Extra {
  readonly [format: string]: JsonObject;
}

/**
 * The sealed part of a model's reasoning: a signature or an encrypted payload. It is opaque, must come back byte for byte, and is valid
 * only for the format (and provider) that made it.
 *
 * @example
 * const proof: Proof = { format: 'messages', kind: 'signature', value: 'EqQBCg…' };
 */
export interface Proof {
  /** The format whose provider made it: `messages`, `generate-content`, `responses`, … */
  readonly format: string;
  /** `signature` vouches for visible text; `encrypted` replaces the text. */
  readonly kind: 'signature' | 'encrypted';
  readonly value: string;
}

/**
 * Something that the other side cannot carry. `path` is in the words of the format it was written in (`logit_bias`,
 * `messages[2].content[0].cache_control`, `generationConfig.seed`).
 *
 * @example
 * if (event.type === 'loss') dropped.add(event.loss.path);
 */
export interface Loss {
  readonly path: string;
  /** `setting`: dropped from the request; `content`: input dropped by the operator's choice; `response`: lost on the way back. */
  readonly kind: 'setting' | 'content' | 'response';
  /** Format names. */
  readonly from: string;
  readonly to: string;
}
