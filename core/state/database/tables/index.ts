/** All tables, in the order in which they are made. */
import { apiKeySteps } from './api-keys.ts';
import { keyvSteps } from './entries.ts';
import { ledgerSteps } from './ledger.ts';
import type { Step } from '../migrations.ts';
import { providerObjectSteps } from './provider-objects.ts';
import { responseSteps } from './responses.ts';
import { taskSteps } from './tasks.ts';
import { usageChargeSteps } from './usage-charges.ts';
import { usageLogSteps } from './usage-log.ts';
import { usageFoldSteps } from './usage-folds.ts';
import { usageOwnerSteps } from './usage-owners.ts';
import { usageSubjectRecordSteps } from './usage-subject-records.ts';

const secrets = 'CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)';

/** Everything that the gateway's database consists of, in the order in which it is made. */
export const schema: readonly Step[] = [
  ...keyvSteps,
  ...responseSteps,
  { name: 'secrets-1', sqlite: secrets, postgres: secrets },
  ...ledgerSteps,
  ...usageLogSteps,
  ...usageOwnerSteps,
  ...usageFoldSteps,
  ...usageChargeSteps,
  ...usageSubjectRecordSteps,
  ...taskSteps,
  ...providerObjectSteps,
  ...apiKeySteps,
];
