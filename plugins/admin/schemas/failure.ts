import { z } from 'zod';
import type { ErrorCode } from 'sluice';
import { errorTable } from 'sluice/internal';

/** Every refusal. `param` names the field or query parameter: `budgets[0].amount`. */
export const failure = z.object({
  error: z.object({
    code: z.enum(Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]]),
    message: z.string().describe('a sentence for a person'),
    param: z.string().optional(),
  }),
});

/** The types of what stands above, as a page takes them. */
export type Failure = z.output<typeof failure>;
