/** What clients and operators did at the gateway that wrote a database, and what it told of that at last. */

import { fileURLToPath } from 'node:url';

/** The folder with the databases that were written. */
export const fixtures = fileURLToPath(new URL('../fixtures/databases/', import.meta.url));

/** A budget of a key, in the unit of the admin API. */
export interface WrittenBudget {
  readonly unit: string;
  readonly period: string;
  readonly amount: number;
  readonly spent: number;
}

/** A key, with its secret. */
export interface WrittenKey {
  readonly id: string;
  readonly name: string;
  readonly note?: string;
  readonly secret: string;
  readonly enabled: boolean;
  readonly budgets: readonly WrittenBudget[];
}

/** Sum of the calls of one key. */
export interface WrittenSum {
  readonly group: string;
  readonly calls: number;
  readonly failed: number;
  /** Absent in what older versions have written. */
  readonly refused?: number;
  readonly input: number;
  readonly output: number;
  readonly microDollars: number;
}

/** Things of administrators: an organisation with a team, the key of the team, a user, and an alias of the run-time configuration. */
export interface WrittenAdministration {
  readonly organisation: string;
  readonly team: string;
  /** Micro-dollars that the organisation has spent. */
  readonly spent: number;
  /** The secret of the key of the team, which was rotated. */
  readonly secret: string;
  readonly user: { readonly id: string; readonly email: string; readonly member: string };
  readonly alias: string;
}

/** All of it. Objects of kinds that the version did not have are absent. */
export interface Written {
  readonly keys: readonly WrittenKey[];
  /** Ids of the usage records, newest first. */
  readonly records: readonly string[];
  readonly sums: readonly WrittenSum[];
  readonly conversation: { readonly id: string; readonly texts: readonly string[] };
  readonly response: string;
  readonly video: string;
  readonly file?: string;
  readonly administration?: WrittenAdministration;
}
