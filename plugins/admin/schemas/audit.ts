/** Schemas of the admin endpoint for the audit log. */
import { z } from 'zod';
import { jsonObject, page, time } from './values.ts';

/** Page of the audit log. */
export const auditQuery = z.strictObject(page);

/** One change. `before` and `after` contain no secrets. */
export const auditEntry = z.object({
  id: z.string(),
  at: time,
  actor: z
    .object({ kind: z.enum(['password', 'user', 'token', 'command-line']), id: z.string(), name: z.string() })
    .optional()
    .describe(
      'actor of the change; absent in entries of versions without users. command-line: `sluice key` on a machine with access to the database',
    ),
  session: z
    .string()
    .optional()
    .describe('first characters of the session id; absent for a token of the admin API'),
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
    .describe('action of a change that a plugin records: name of the plugin, dot, name of the action'),
  organisation: z
    .string()
    .optional()
    .describe('id of the organisation that the change concerns, or that of the actor'),
  /** Id of the changed object. */
  target: z.string().optional(),
  before: jsonObject.optional(),
  after: jsonObject.optional(),
});

/** A page of the audit log, newest first. */
export const auditPage = z.object({
  entries: z.array(auditEntry),
  next: z.string().optional().describe('cursor of the next page; absent on the last'),
});

/** Types of these schemas, for the dashboard. */
export type AuditEntry = z.output<typeof auditEntry>;
export type AuditPage = z.output<typeof auditPage>;
