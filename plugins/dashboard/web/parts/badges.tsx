/** Small parts of tables and details: states, tags, limits and budgets of keys and owners, and how a call went. */
import { Fragment, type ReactNode } from 'react';
import type { BudgetStateView, KeyView, UsageRecordView } from '../../../admin/schemas/index.ts';
import { budgetText } from './differences.ts';
import { addressOf } from './router.ts';
import { brief, count, money } from './text.ts';

/** A coloured word. The word alone carries the meaning. */
export function Badge({
  kind = '',
  children,
}: {
  readonly kind?: '' | 'good' | 'warn' | 'bad' | 'accent';
  readonly children: ReactNode;
}) {
  return <span className={`badge ${kind}`}>{children}</span>;
}

/** Status that the client saw, with the gateway's code where the call failed. */
export function Status({
  status,
  code,
}: {
  readonly status: number | undefined;
  readonly code?: string | undefined;
}) {
  if (status === undefined) return <Badge>–</Badge>;
  const kind =
    status < 400
      ? code === undefined
        ? 'good'
        : 'bad'
      : status === 499
        ? ''
        : status < 500
          ? 'warn'
          : 'bad';
  return (
    <span className="nowrap" title={code}>
      <Badge kind={kind}>{status}</Badge>
    </span>
  );
}

/** An identifier that may wrap behind each underscore. A copy of it has no other characters. */
export function Breakable({ text }: { readonly text: string }) {
  return text.split(/(?<=_)/).map((part, index) => (
    // Parts have no id, and may be equal; their order never changes.
    <Fragment key={index}>
      {part}
      <wbr />
    </Fragment>
  ));
}

/** The client's format, and how the channel was spoken to. */
export function Formats({
  call: { format, upstreamFormat, stream, passThrough },
}: {
  readonly call: Pick<UsageRecordView, 'format' | 'upstreamFormat' | 'stream' | 'passThrough'>;
}) {
  const words = [
    upstreamFormat !== undefined && upstreamFormat !== format && `→ ${upstreamFormat}`,
    passThrough === true && 'passed through',
    stream ? 'stream' : 'whole',
  ];
  return (
    <>
      <span className="nowrap">{format}</span>
      <span className="sub">{words.filter((word) => word !== false).join(', ')}</span>
    </>
  );
}

/** Short texts in a row, and how many more there are. */
export function Tags({ values, most = 4 }: { readonly values: readonly string[]; readonly most?: number }) {
  return (
    <span className="tags" title={values.length > most ? values.join('\n') : undefined}>
      {values.slice(0, most).map((value) => (
        <span key={value} className="tag">
          {value}
        </span>
      ))}
      {values.length > most && <span className="tag">+{values.length - most}</span>}
    </span>
  );
}

const periods = { day: 'today', week: 'this week', month: 'this month', total: 'in total' } as const;

/** The period of a budget, in words. */
function periodOf({ period, hours, timeZone }: BudgetStateView): string {
  if (period === 'hours') return hours === 1 ? 'in the last hour' : `in the last ${hours} hours`;
  return timeZone === undefined ? periods[period] : `${periods[period]} (${timeZone})`;
}

/** Shows how much of a budget is spent, and how much running calls have reserved. */
function BudgetBar({ budget }: { readonly budget: BudgetStateView }) {
  const { amount, spent, reserved, unit } = budget;
  const period = periodOf(budget);
  const show = unit === 'token' ? brief : money;
  const share = (value: number): number => (amount === 0 ? 100 : Math.min(100, (value / amount) * 100));
  const kind = spent >= amount ? 'bad' : spent >= amount * 0.8 ? 'warn' : '';
  const what = unit === 'token' ? ' tokens' : '';
  const exact =
    unit === 'token' ? `${count(spent)} of ${count(amount)} tokens` : `${money(spent)} of ${money(amount)}`;
  return (
    <div className="budget" title={`${exact} spent ${period}, ${show(reserved)} reserved`}>
      <span className="text">
        <span>
          {show(spent)} <span className="muted">of {show(amount) + what}</span>
        </span>
        <span className="muted">{period}</span>
      </span>
      <span
        className={`bar ${kind}`}
        role="progressbar"
        aria-label={`Budget ${period}`}
        aria-valuenow={Math.round(share(spent))}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <i style={{ width: `${share(spent)}%` }} />
        <i className="reserved" style={{ width: `${Math.min(100 - share(spent), share(reserved))}%` }} />
      </span>
    </div>
  );
}

/** Limits of rate, of a key or an owner. */
type Rates = Pick<KeyView, 'requestsPerMinute' | 'tokensPerMinute' | 'concurrency'>;

/** Returns limits of rate in words. */
export function limitsOf({ requestsPerMinute, tokensPerMinute, concurrency }: Rates): string[] {
  return [
    requestsPerMinute !== undefined && `${brief(requestsPerMinute)} calls / min`,
    tokensPerMinute !== undefined && `${brief(tokensPerMinute)} tokens / min`,
    concurrency !== undefined && `${brief(concurrency)} at a time`,
  ].filter((text) => text !== false);
}

const none = <span className="muted">–</span>;

/** Limits of rate, one a line. */
export function LimitLines({ limits }: { readonly limits: Rates }) {
  const lines = limitsOf(limits);
  if (lines.length === 0) return none;
  return lines.map((text) => (
    <span key={text} className="line small nowrap">
      {text}
    </span>
  ));
}

/** Budgets, one below the other. */
export function BudgetBars({ budgets }: { readonly budgets: readonly BudgetStateView[] }) {
  if (budgets.length === 0) return none;
  return budgets.map((budget) => (
    <BudgetBar key={[budget.unit, budget.period, budget.hours, budget.timeZone].join()} budget={budget} />
  ));
}

/** The budget that each end user has by itself. */
export function EndUserBudget({ budget }: { readonly budget: KeyView['endUserBudget'] }) {
  return budget === undefined ? none : budgetText(budget);
}

/** Models that may be used. */
export function ModelTags({
  models,
  most = 3,
}: {
  readonly models: readonly string[] | undefined;
  readonly most?: number;
}) {
  return models === undefined ? <span className="muted">all</span> : <Tags values={models} most={most} />;
}

/** Shows whether a key may be used. */
export function KeyState({ state }: { readonly state: KeyView['state'] }) {
  return <Badge kind={state === 'valid' ? 'good' : state === 'expired' ? 'warn' : ''}>{state}</Badge>;
}

/** Team and member of a key, with links to them. */
export function KeyOwners({
  apiKey: { team, teamName, member, memberName },
}: {
  readonly apiKey: Pick<KeyView, 'team' | 'teamName' | 'member' | 'memberName'>;
}) {
  if (team === undefined && member === undefined) return none;
  const link = (id: string, name: string | undefined): ReactNode =>
    name === undefined ? (
      <span className="bad-text">deleted: {id}</span>
    ) : (
      <a className="truncate" href={addressOf('owners', { owner: id })}>
        {name}
      </a>
    );
  return (
    <>
      {team !== undefined && link(team, teamName)}
      {member !== undefined && link(member, memberName)}
    </>
  );
}

/** Shows whether the keys of an owner may be used. */
export function OwnerState({ enabled }: { readonly enabled: boolean }) {
  return <Badge kind={enabled ? 'good' : ''}>{enabled ? 'enabled' : 'disabled'}</Badge>;
}
