/** Table of the usage log that tells which sums were folded into those of more days. */
import type { Step } from '../migrations.ts';

/**
 * Which folds there are, see `money/usage-log/folds.ts`. Times are in minutes, as those of sums are. `after`: the number of the last key or
 * owner that was folded; absent when all were.
 */
const folds = `
      CREATE TABLE usage_folds (
        level SMALLINT NOT NULL, start INTEGER NOT NULL, until INTEGER NOT NULL, after BIGINT, PRIMARY KEY (level, start)
      );
      CREATE INDEX usage_folds_until ON usage_folds (until);`;

/**
 * Sums of days are folded into those of more days. Older gateways add only to recent sums; a backlog older than two days that they add is
 * missing from folds.
 */
export const usageFoldSteps: readonly Step[] = [
  { name: 'usage-folds-1', isAddition: true, sqlite: folds, postgres: folds },
];
