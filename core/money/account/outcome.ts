/** Builds the final state of a call (`CallOutcome`) from its account: usage, cost, attempts, times and dropped fields. */
import type { AttemptEvent } from '../../model/event.ts';
import { sumUsage, type Usage } from '../../model/usage.ts';
import type { CallAttempt, CallCost, CallOutcome, CallTimes } from '../../sdk/author/outcome.ts';
import type { CallAttempts } from './attempts.ts';
import { costOf as costOfCharge, type Charge } from './charge.ts';
import { rounded, type CallRecord } from './record.ts';

/** Parts of an account that an outcome needs. */
export interface Accounted {
  readonly record: CallRecord;
  readonly attempts: Pick<CallAttempts, 'firstAttemptAt' | 'answered'>;
  readonly usage: Usage | undefined;
  readonly cost: CallCost | undefined;
  /** Usage that was settled apart from the call. */
  readonly apart: Charge | undefined;
}

/** Returns the final state of a call. */
export function outcomeOf(account: Accounted): CallOutcome {
  const { record } = account;
  const { error, attempt } = record;
  const usage = usageOf(account);
  const cost = costOf(account, usage);
  const failed = record.failures((event) => attemptOf(event, record.startedAt)) ?? [];
  return {
    id: record.id,
    ended: record.ending,
    status: record.status,
    ...(error === undefined ? {} : { error }),
    model: record.model,
    ...(usage === undefined ? {} : { usage }),
    ...(cost === undefined ? {} : { cost }),
    attempts: attempt === undefined ? failed : [...failed, answeredOf(account, attempt)],
    times: timesOf(account),
    dropped: record.losses() ?? [],
  };
}

function timesOf({ record, attempts: { firstAttemptAt } }: Accounted): CallTimes {
  const { firstMs } = record;
  return {
    ...(firstAttemptAt === undefined ? {} : { queuedMs: rounded(firstAttemptAt - record.startedAt) }),
    ...(firstMs === undefined ? {} : { firstMs }),
    totalMs: rounded(record.ms),
  };
}

function usageOf({ usage, apart }: Accounted): Usage | undefined {
  if (usage === undefined || apart?.usage === undefined) return usage ?? apart?.usage;
  return sumUsage(usage, apart.usage);
}

function costOf({ cost, apart }: Accounted, usage: Usage | undefined): CallCost | undefined {
  if (usage === undefined) return undefined;
  if (apart === undefined) return cost;
  const price = apart.price ?? cost?.price;
  if (price === undefined) return undefined;
  return { microDollars: costOfCharge(apart) + (cost?.microDollars ?? 0), price };
}

function attemptOf(
  { type: _type, startedAt, endedAt, ...attempt }: AttemptEvent,
  arrival: number,
): CallAttempt {
  return {
    ...attempt,
    ...(startedAt === undefined ? {} : { startMs: rounded(startedAt - arrival) }),
    ...(endedAt === undefined ? {} : { endMs: rounded(endedAt - arrival) }),
  };
}

/** The attempt that answered: its key and its times are those of the request that was sent, and of the response. */
function answeredOf({ record, attempts }: Accounted, event: AttemptEvent): CallAttempt {
  const answered = attempts.answered(event);
  const key = answered?.target.key.id ?? '';
  return {
    ...attemptOf(event, record.startedAt),
    ...(key === '' ? {} : { key }),
    ...(answered === undefined ? {} : { startMs: rounded(answered.at - record.startedAt) }),
    endMs: rounded(record.ms),
  };
}
