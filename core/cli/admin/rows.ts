/** The table of the commands on top of the admin API. */
import type { Row } from './row.ts';
import { configRows } from './rows-config.ts';
import { peopleRows } from './rows-owners.ts';
import { watchingRows } from './rows-watching.ts';

/** One line about each group of commands. */
export const groupSummaries = {
  organization: 'Manages organizations.',
  team: 'Manages teams.',
  member: 'Manages members, who own API keys.',
  'service-account': 'Manages service accounts, which own API keys.',
  user: 'Manages users: invitations, roles and teams.',
  token: 'Manages tokens of the admin API.',
  budget: 'Shows and sets budgets of API keys, owners and end users.',
  channel: 'Manages channels: health, run-time channels, tests and history.',
  alias: 'Manages model aliases.',
  price: 'Manages run-time prices of models.',
  usage: 'Sums, lists and exports usage.',
  audit: 'Lists the audit log.',
  alert: 'Lists, tests and mutes alerts.',
} as const;

/** A group of commands. */
export type Group = keyof typeof groupSummaries;

/** All commands. */
export const rows: readonly Row[] = [...peopleRows, ...configRows, ...watchingRows];
