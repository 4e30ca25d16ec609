/** Schemas of the error responses of the admin API. */
import { z } from 'zod';
import type { ErrorCode } from 'sluice';
import { errorTable } from 'sluice/internal';

/** A problem of a configuration entry. */
export const entryProblem = z.object({
  option: z.string().optional().describe('path of the option that the problem concerns: `timeouts.idle`'),
  message: z.string(),
});

/** Error response. `param` names the field or query parameter: `budgets[0].amount`. */
export const failure = z.object({
  error: z.object({
    code: z.enum(Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]]),
    message: z.string().describe('error message for people'),
    param: z.string().optional(),
    problems: z.array(entryProblem).optional().describe('problems of an invalid configuration entry'),
  }),
});

/** Types of these schemas, for the dashboard. */
export type EntryProblem = z.output<typeof entryProblem>;
export type Failure = z.output<typeof failure>;
