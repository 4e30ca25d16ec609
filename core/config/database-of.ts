/** Finds the database of a config. */
import { isAbsolute, resolve } from 'node:path';
import { urlOf, type DatabaseSettings } from '../settings/database.ts';
import type { LoadedConfig } from './config.ts';

/** Returns the database: the config's, or `sluice.db` in the data folder. Relative paths begin at the config's folder. */
export function databaseOf(config: LoadedConfig): DatabaseSettings {
  const { database, data } = config.settings;
  if (database === undefined) return `sqlite:${resolve(config.root, data, 'sluice.db')}`;
  if (typeof database !== 'string') return database;
  const path = database.startsWith('sqlite:') ? database.slice('sqlite:'.length) : undefined;
  if (path === undefined || path === ':memory:' || isAbsolute(path)) return database;
  return `sqlite:${resolve(config.root, path)}`;
}

/** Returns the URL of {@link databaseOf}. */
export function databaseUrl(config: LoadedConfig): string {
  return urlOf(databaseOf(config));
}
