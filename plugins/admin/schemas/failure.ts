/** Schemas of the error responses of the admin API. */
import { z } from 'zod';
import type { ErrorCode } from 'sluice';
import { errorTable } from 'sluice/internal';

/** A problem of a configuration entry. */
export const entryProblem = z.object({
  option: z.string().optional().describe('path of the option that it is about: `timeouts.idle`'),
  message: z.string(),
});

/** Every refusal. `param` names the field or query parameter: `budgets[0].amount`. */
export const failure = z.object({
  error: z.object({
    code: z.enum(Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]]),
    message: z.string().describe('a sentence for a person'),
    param: z.string().optional(),
    problems: z
      .array(entryProblem)
      .optional()
      .describe('of a configuration entry that does not fit: each by itself'),
  }),
});

/** The types of what stands above, as a page takes them. */
export type EntryProblem = z.output<typeof entryProblem>;
export type Failure = z.output<typeof failure>;
