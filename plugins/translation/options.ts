/** Schema of the translation options: dropped parameters, unsupported input, output limits and the maximum size of a response. */
import { z } from 'zod';
import { defaultWholeLimit } from './decode-reply.ts';

/** Options of the plugin. */
export const options = z.strictObject({
  /**
   * Refuses a request with 400 if one of its fields cannot be translated, instead of dropping and reporting the field. Clients request the
   * same with `x-sluice-strict: true`.
   */
  strict: z.boolean().default(false),
  /**
   * Handling of input that the channel's format cannot carry, such as audio for a text format: `refuse` the request or `drop` the input.
   */
  unsupported: z.enum(['refuse', 'drop']).default('refuse'),
  /**
   * Handling of a request for more output tokens than the catalogue or the config has for exactly this model. `refuse`: 400 for clients of
   * the messages format; other requests are forwarded. `clamp`: lowers it to the model's limit and reports that. `forward`: sends it
   * unchanged.
   */
  outputLimit: z.enum(['refuse', 'clamp', 'forward']).default('refuse'),
  /** Maximum bytes of a non-streamed response that is buffered for translation. */
  wholeLimit: z.int().min(1024).default(defaultWholeLimit),
});

/** Parsed options of this plugin. */
export type TranslationOptions = z.output<typeof options>;
