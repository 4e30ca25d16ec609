import type { ReportShared } from '../../state/links/shared-link.ts';
import { MemoryRates } from './memory.ts';
import { PrimaryRates } from './primary.ts';
import { openRedisRates } from './redis.ts';
import type { Rates, RatesLine, RateTimes, SharedSettings } from './index.ts';

/** Opens the rates: at once, also when the shared store cannot be reached. `line` leads to whoever counts for several processes. */
export function openRates(
  shared: SharedSettings,
  report: ReportShared,
  times: RateTimes = {},
  line?: RatesLine,
): Rates {
  if (!shared.url.startsWith('memory:')) return openRedisRates(shared, report, times);
  return line === undefined ? new MemoryRates(times) : new PrimaryRates(line, shared.whenDown, report, times);
}
