import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { FuzzedBody } from './bodies.ts';
import type { ReadPart } from './forwarding.ts';

/** File with the bodies that were accepted, and how Starlette read what was forwarded for them. */
export const tableFile = fileURLToPath(new URL('starlette.json', import.meta.url));

/** One of these bodies. */
export interface KeptBody {
  readonly type: string;
  /** Base64. */
  readonly body: string;
  /** SHA-256 of what was forwarded, under the boundary `new`. */
  readonly sent: string;
  /** Parts as Starlette parses them. */
  readonly read: readonly ReadPart[];
}

/** The table. */
export interface KeptTable {
  readonly versions: Readonly<Record<string, string>>;
  readonly seed: number;
  /** Number of bodies that were drawn from the seed, those that were refused among them. */
  readonly drawn: number;
  readonly bodies: readonly KeptBody[];
}

/** Returns the SHA-256 of a form, with the boundary `new` in place of the random one. */
export function digestOf({ type, bytes }: FuzzedBody): string {
  const [, boundary = ''] = /boundary=(.*)$/.exec(type) ?? [];
  return createHash('sha256').update(bytes.toString('latin1').replaceAll(boundary, 'new')).digest('hex');
}
