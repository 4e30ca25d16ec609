/** Settings of people: what new members get, and how long a sign-in lasts. */
import { z } from 'zod';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const limit = z.int().min(1).max(1e12);

const budget = z.strictObject({
  unit: z.enum(['micro-dollar', 'token']).describe('what is counted'),
  period: z.enum(['day', 'week', 'month', 'total']).describe('time after which it begins anew, in UTC'),
  amount: z.int().min(0).max(1e15).describe('most of a period'),
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
        budgets: z.array(budget).max(6).exactOptional().describe('budgets of each of them'),
        requestsPerMinute: limit.exactOptional().describe('calls in a minute'),
        tokensPerMinute: limit.exactOptional().describe('tokens in a minute'),
        concurrency: limit.exactOptional().describe('calls at the same time'),
        models: z
          .array(z.string().min(1).max(200))
          .min(1)
          .max(50)
          .exactOptional()
          .describe('names and patterns of the models that they may use. Default: all'),
      })
      .prefault({})
      .describe('limits of the members that are made for new users'),
    maxKeys: z
      .int()
      .min(0)
      .max(10_000)
      .default(20)
      .describe('maximum number of API keys that a member has when it creates another'),
    invitation: z
      .int()
      .min(60_000)
      .max(30 * dayMs)
      .default(7 * dayMs)
      .describe('time in which an invitation can be used'),
    idle: z
      .int()
      .min(60_000)
      .max(30 * dayMs)
      .default(12 * hourMs)
      .describe('time after its last use at which a session ends'),
    lifetime: z
      .int()
      .min(60_000)
      .max(90 * dayMs)
      .default(7 * dayMs)
      .describe('time after the sign-in at which a session ends in any case'),
  })
  .prefault({});

/** Checked settings of people. */
export type MemberSettings = z.output<typeof membersSchema>;
/** Limits and organisation of a new member. */
export type MemberDefaults = MemberSettings['defaults'];
