/** Types of what the gateway stores about the lines of a batch file: models, references, endpoints and upper bounds of usage. */
import type { NamedAddress } from './core-types.ts';
import type { PaidMember } from '../_find-paid-members.ts';
import type { Needs } from './needs.ts';

/** Summary of a file whose lines are requests of a batch. */
export interface RequestedLines {
  /** Public names of the models that the lines name, each once. */
  readonly models: readonly string[];
  /** True where some lines name no model. */
  readonly unnamed?: true;
  /** Objects that the lines refer to: kinds and ids. */
  readonly references: readonly (readonly [kind: string, id: string])[];
  readonly count: number;
  /** Members by which lines run a further model or a paid service, each kind once. Absent in data of earlier versions. */
  readonly paid?: readonly PaidMember[];
  /** Addresses of storage that lines name, each once. Absent in data of earlier versions. */
  readonly addresses?: readonly NamedAddress[];
  /** Endpoints that lines name, each once. */
  readonly endpoints: readonly string[];
  /** Upper bounds of the usage by model, with `''` for lines that name none. Absent where a line cannot be read. */
  readonly needs?: Readonly<Record<string, Needs>>;
  /** Reason why a line cannot be read. */
  readonly unreadable?: string;
}

/** State of reading a file that is uploaded in several requests, stored as JSON between them. */
export interface BegunLines extends RequestedLines {
  /** Bytes of the incomplete last line, in base64. */
  readonly rest: string;
}
