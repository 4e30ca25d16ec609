/** Settings of people: limits of new members, and the duration of sessions. */
import { z } from 'zod';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const limit = z.int().min(1).max(1e12);

const budget = z.strictObject({
  unit: z.enum(['micro-dollar', 'token']).describe('unit of the budget'),
  period: z
    .enum(['day', 'week', 'month', 'total'])
    .describe('period after which the budget starts anew, in UTC'),
  amount: z.int().min(0).max(1e15).describe('maximum use in a period'),
});

/** People who sign in to the dashboard and the admin API. */
export const membersSchema = z
  .strictObject({
    defaults: z
      .strictObject({
        organisation: z
          .string()
          .min(1)
          .max(100)
          .exactOptional()
          .describe('id of the organisation of new users with the role member'),
        budgets: z.array(budget).max(6).exactOptional().describe('budgets of each new member'),
        requestsPerMinute: limit.exactOptional().describe('maximum number of calls in a minute'),
        tokensPerMinute: limit.exactOptional().describe('maximum number of tokens in a minute'),
        concurrency: limit.exactOptional().describe('maximum number of calls that run at the same time'),
        models: z
          .array(z.string().min(1).max(200))
          .min(1)
          .max(50)
          .exactOptional()
          .describe('names and patterns of the models that new members may use. Default: all'),
      })
      .prefault({})
      .describe('limits of the members that are created for new users'),
    maxKeys: z
      .int()
      .min(0)
      .max(10_000)
      .default(20)
      .describe('maximum number of API keys of a member. A member that has as many cannot create another'),
    invitation: z
      .int()
      .min(60_000)
      .max(30 * dayMs)
      .default(7 * dayMs)
      .describe('time for which an invitation can be used'),
    idle: z
      .int()
      .min(60_000)
      .max(30 * dayMs)
      .default(12 * hourMs)
      .describe('idle time after which a session ends'),
    lifetime: z
      .int()
      .min(60_000)
      .max(90 * dayMs)
      .default(7 * dayMs)
      .describe('maximum duration of a session, from the sign-in'),
  })
  .prefault({});

/** Checked settings of people. */
export type MemberSettings = z.output<typeof membersSchema>;
/** Limits and organisation of a new member. */
export type MemberDefaults = MemberSettings['defaults'];
