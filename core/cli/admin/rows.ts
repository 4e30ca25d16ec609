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
  user: 'Manages the people who sign in: invitations, roles, teams.',
  token: 'Manages tokens of the admin API.',
  budget: 'Shows and sets budgets of keys, owners and their end users.',
  channel: 'Manages channels: health, run-time channels, tests, history.',
  alias: 'Manages other names of models.',
  price: 'Manages prices of models that were set at run time.',
  usage: 'Sums, lists and exports usage.',
  audit: 'Lists what was changed by whom.',
  alert: 'Lists, tests and mutes alerts.',
} as const;

/** A group of commands. */
export type Group = keyof typeof groupSummaries;

/** All commands. */
export const rows: readonly Row[] = [...peopleRows, ...configRows, ...watchingRows];
