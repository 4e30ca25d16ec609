/** Options of the admin plugin for provisioning by SCIM 2.0. */
import { secret } from 'sluice';
import { z } from 'zod';
import { accessRule } from '../sign-in/options.ts';

/** The option `scim` of the admin plugin. Without it there is no SCIM. */
export const scimOptions = z.strictObject({
  /** Bearer token of the directory: at least 32 random characters. Absent: a token of the admin API with `users:write` and `owners:write`. */
  token: secret(z.string().min(32).max(1_000)).optional(),
  /** Effect of deactivating or deleting a user on its API keys: `off` disables the member that owns them, `stay` leaves them unchanged. */
  keysOfDeactivated: z.enum(['off', 'stay']).default('off'),
  /** Roles that the members of a group get. `lead` lets them lead the team of the group. */
  rules: z
    .array(accessRule.omit({ team: true }))
    .max(200)
    .default([]),
});

/** Settings of SCIM. */
export type ScimOptions = Readonly<z.output<typeof scimOptions>>;
