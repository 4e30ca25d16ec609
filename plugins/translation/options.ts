/** Schema of the translation options: dropped parameters, unsupported input, output limits and the maximum size of a response. */
import { z } from 'zod';
import { defaultWholeLimit } from './decode-reply.ts';

/** What an operator may choose. */
export const options = z.strictObject({
  /** Refuse a request (400) when one of its settings cannot be carried, instead of dropping and reporting it. A client asks for the same with `x-sluice-strict: true`. */
  strict: z.boolean().default(false),
  /** What to do with input that the channel's format cannot carry, such as audio for a text format. */
  unsupported: z.enum(['refuse', 'drop']).default('refuse'),
  /**
   * What to do with a request for more output tokens than the catalogue or the config states for exactly this model: `refuse` it (400) for clients of
   * the messages format and leave the others to the provider, `clamp` it to the model's limit and report that, or `forward` it.
   */
  outputLimit: z.enum(['refuse', 'clamp', 'forward']).default('refuse'),
  /** Largest whole reply that is held to be translated, in bytes. */
  wholeLimit: z.int().min(1024).default(defaultWholeLimit),
});

/** Parsed options of this plugin. */
export type TranslationOptions = z.output<typeof options>;
