/** Attempts of a call at providers, with the causes of failures. */
import type { UsageRecordView } from '../../../admin/schemas/index.ts';
import { Badge } from '../parts/badges.tsx';
import { count } from '../parts/text.ts';

type Attempt = NonNullable<UsageRecordView['attempts']>[number];
type Cause = NonNullable<UsageRecordView['cause']>;

/** Returns what lies behind a failure: the provider's status and words. */
export function causeText({ status, message }: Cause): string {
  return [status !== undefined && `HTTP ${status}`, message].filter(Boolean).join(': ');
}

/** All attempts of a call in their order: those that failed, then the one that answered. */
export function Attempts({ record }: { readonly record: UsageRecordView }) {
  const { attempts = [], channel, upstreamModel, upstreamFormat, status, code } = record;
  const hasAnswered = channel !== undefined && status < 400 && code === undefined;
  if (attempts.length === 0) return null;
  return (
    <section className="stack">
      <h3>Attempts</h3>
      <ol className="attempts">
        {attempts.map((attempt, index) => (
          // Attempts have no id; their order never changes.
          <li key={index}>
            <FailedAttempt attempt={attempt} />
          </li>
        ))}
        {hasAnswered && (
          <li>
            <Badge kind="good">answered</Badge>
            <strong>{channel}</strong>
            <span className="muted">{[upstreamModel, upstreamFormat].filter(Boolean).join(', ')}</span>
          </li>
        )}
      </ol>
    </section>
  );
}

function FailedAttempt({ attempt }: { readonly attempt: Attempt }) {
  const { channel, key, model, failure, cause, input } = attempt;
  const isHedged = failure === 'hedged';
  return (
    <>
      <Badge kind={isHedged ? '' : 'bad'}>{isHedged ? 'another was faster' : 'failed'}</Badge>
      <strong>{String(channel ?? '?')}</strong>
      {typeof model === 'string' && <span className="muted">{model}</span>}
      {!isHedged && failure !== undefined && <code className="bad-text">{String(failure)}</code>}
      {typeof key === 'string' && key !== '' && <span className="muted small">key {key}</span>}
      {typeof input === 'number' && <span className="muted small">{count(input)} tokens in</span>}
      {isCause(cause) && <span className="cause">{causeText(cause)}</span>}
    </>
  );
}

function isCause(value: unknown): value is Cause {
  return typeof value === 'object' && value !== null;
}
