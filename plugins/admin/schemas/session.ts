import { z } from 'zod';
import { time } from './values.ts';

/** The body of a login. */
export const login = z.strictObject({
  password: z
    .string('must be a text')
    .min(1, 'must not be empty')
    .max(1024, 'must be at most 1024 characters'),
});

/** A session: what a login gives, and what a page asks when it is loaded again. */
export const session = z.object({
  /** The first characters of its id, as the audit shows them. */
  session: z.string(),
  /** Goes into the header `x-csrf-token` of every request that changes something. */
  csrfToken: z.string(),
  /** Moves on while it is used. */
  expiresAt: time,
});

/** The types of what stands above, as a page takes them. */
export type Session = z.output<typeof session>;
