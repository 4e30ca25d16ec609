import type { NamedAddress } from './core-types.ts';
import type { PaidMember } from '../_find-paid-members.ts';
import type { Needs } from './needs.ts';

/** What the lines of a file ask for, where each is a request of a batch. */
export interface RequestedLines {
  /** The public names of their models, each once; none where the lines name no model. */
  readonly models: readonly string[];
  /** True where some of them name none. */
  readonly unnamed?: true;
  /** What they refer to: kinds and ids. */
  readonly references: readonly (readonly [kind: string, id: string])[];
  readonly count: number;
  /** Members by which they run a further model or a paid service, each sort once. Absent in what was read by earlier versions. */
  readonly paid?: readonly PaidMember[];
  /** Addresses of storage that they name, each once. Absent in what was read by earlier versions. */
  readonly addresses?: readonly NamedAddress[];
  /** The endpoints that they are for, each once, where lines name theirs. */
  readonly endpoints: readonly string[];
  /** What they may use, by the model that they name, or `''` where they name none; absent where one of them cannot be read. */
  readonly needs?: Readonly<Record<string, Needs>>;
  /** Why it cannot. */
  readonly unreadable?: string;
}

/** What was read of a file that comes in several requests: as JSON, between two of them. */
export interface BegunLines extends RequestedLines {
  /** The line that is not complete, in base64. */
  readonly rest: string;
}
