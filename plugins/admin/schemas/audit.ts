/** Schemas of the admin endpoint for the audit log. */
import { z } from 'zod';
import { jsonObject, page, time } from './values.ts';

/** Which page of the audit is wanted. */
export const auditQuery = z.strictObject(page);

/** One change. `before` and `after` contain no secrets. */
export const auditEntry = z.object({
  id: z.string(),
  at: time,
  actor: z
    .object({ kind: z.enum(['password', 'user', 'token', 'command-line']), id: z.string(), name: z.string() })
    .optional()
    .describe(
      'who made it; absent in entries from before there were users. command-line: sluice key on a machine with the database',
    ),
  session: z
    .string()
    .optional()
    .describe('the first characters of the session id; absent for a token of the admin API'),
  ip: z.string(),
  action: z
    .union([
      z.enum([
        'login',
        'logout',
        'key-create',
        'key-update',
        'key-rotate',
        'key-old-secret-end',
        'token-create',
        'token-revoke',
        'key-enable',
        'key-disable',
        'key-delete',
        'sign-in',
        'user-create',
        'user-update',
        'user-delete',
        'user-invite',
        'user-accept',
        'user-reset-second-factor',
        'password-change',
        'second-factor-add',
        'second-factor-remove',
        'session-end',
        'owner-create',
        'owner-update',
        'owner-delete',
        'channel-test',
        'channel-enable',
        'channel-disable',
        'channel-reset',
        'config-create',
        'config-update',
        'config-enable',
        'config-disable',
        'config-delete',
        'config-order',
        'config-test',
        'config-undo',
        'usage-export',
        'reload',
        'plugin-route',
      ]),
      z.templateLiteral([z.string(), '.', z.string()]),
    ])
    .describe('of a change that a plugin records: its name, a dot and what it did'),
  organisation: z
    .string()
    .optional()
    .describe('id of the organisation that the change concerns, or that of the actor'),
  /** The id of what was changed. */
  target: z.string().optional(),
  before: jsonObject.optional(),
  after: jsonObject.optional(),
});

/** A page of the audit, newest first. */
export const auditPage = z.object({
  entries: z.array(auditEntry),
  next: z.string().optional().describe('the cursor of the next page; absent on the last'),
});

/** The types of what stands above, as a page takes them. */
export type AuditEntry = z.output<typeof auditEntry>;
export type AuditPage = z.output<typeof auditPage>;
