/*
 * Everything that goes in and out of the admin API. Times are in milliseconds since 1970, durations in milliseconds, money in whole
 * micro-dollars. The types are what a page imports.
 */

export * from './values.ts';
export * from './audit.ts';
export * from './channels.ts';
export * from './config.ts';
export * from './failure.ts';
export * from './keys.ts';
export * from './limits.ts';
export * from './live.ts';
export * from './overview.ts';
export * from './owners.ts';
export * from './processes.ts';
export * from './session.ts';
export * from './tokens.ts';
export * from './usage.ts';
export * from './users.ts';
