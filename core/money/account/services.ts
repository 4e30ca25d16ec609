/** Types of the services that the accounts of a gateway use. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Bookkeeper } from '../ledger/index.ts';
import type { Prices } from '../prices/index.ts';
import type { EndedCalls } from './ended-calls.ts';

/** Services of one gateway. */
export interface AccountServices {
  readonly bookkeeper: Pick<Bookkeeper, 'enqueue' | 'release'>;
  readonly prices: Pick<Prices, 'cost'>;
  readonly ended: EndedCalls;
  /** Reports an error of the work that is done when a call has ended. */
  report(error: unknown, callId: string, sentence?: string): void;
}

/** Makes the usage record of a call that has ended. */
export type Recorder = () => UsageRecord;
