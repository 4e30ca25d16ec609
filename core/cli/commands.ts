/** All commands by their names, in the order of the overview. */
import type { Group } from './admin/rows.ts';
import type { Command } from './command.ts';
import { lookupTable } from '../model/lookup-table.ts';

/** Loads a command when it is first used, so that the primary process loads none of the others. */
export const commands = lookupTable<() => Promise<Command>>({
  start: async () => (await import('./start.ts')).start,
  doctor: async () => (await import('./doctor.ts')).doctor,
  init: async () => (await import('./init.ts')).init,
  backup: async () => (await import('./backup.ts')).backup,
  check: async () => (await import('./check.ts')).check,
  connect: async () => (await import('./connect.ts')).connect,
  export: async () => (await import('./export.ts')).exportConfig,
  key: async () => (await import('./key.ts')).key,
  login: async () => (await import('./login.ts')).login,
  models: async () => (await import('./models.ts')).models,
  restore: async () => (await import('./restore.ts')).restore,
  prices: async () => (await import('./prices.ts')).prices,
  organization: () => onAdminApi('organization'),
  team: () => onAdminApi('team'),
  member: () => onAdminApi('member'),
  'service-account': () => onAdminApi('service-account'),
  user: () => onAdminApi('user'),
  token: () => onAdminApi('token'),
  budget: () => onAdminApi('budget'),
  channel: () => onAdminApi('channel'),
  alias: () => onAdminApi('alias'),
  price: () => onAdminApi('price'),
  usage: () => onAdminApi('usage'),
  audit: () => onAdminApi('audit'),
  alert: () => onAdminApi('alert'),
});

/** Loads a command on top of the admin API. */
async function onAdminApi(group: Group): Promise<Command> {
  return (await import('./admin/command.ts')).adminCommand(group);
}
