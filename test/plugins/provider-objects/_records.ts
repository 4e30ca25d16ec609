import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import type { UsageRecord } from '../../../core/model/usage-record.ts';
import type { TestGateway } from '../../support/gateway.ts';

/** The records of batches in the usage log, the newest first. */
export async function charges({ stores }: Pick<TestGateway, 'stores'>): Promise<readonly UsageRecord[]> {
  const { records } = await openUsageLog(stores).page({}, 100);
  return records.filter(({ operation }) => operation === 'batch');
}
