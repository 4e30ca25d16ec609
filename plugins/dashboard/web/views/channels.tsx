/** View of the channels: health, formats, switches and tests. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ChannelTestResult, ChannelView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge, Tags } from '../parts/badges.tsx';
import { ChannelHealth, isTroubled, StandingBadge } from '../parts/channel-health.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { addressOf } from '../parts/router.ts';
import { Await, Empty } from '../parts/states.tsx';
import { ago, count, duration, exactly, percent } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';

/** The configured providers: how they do, what they speak, and a switch for each. */
export function Channels() {
  const channels = useQuery({ queryKey: ['channels'], queryFn: api.channels, refetchInterval: 5_000 });
  return (
    <>
      <header>
        <h1>Channels</h1>
        <p>
          In the order of the config. Add and change them under{' '}
          <a href={addressOf('config')}>Configuration</a>.
        </p>
      </header>
      <Await query={channels} what="the channels">
        {({ channels: all }) =>
          all.length === 0 ? (
            <div className="card">
              <Empty title="No channels">
                <p>Add one under Configuration: every call needs a channel that answers it.</p>
              </Empty>
            </div>
          ) : (
            <ul className="grid two">
              {all.map((channel) => (
                <li key={channel.id}>
                  <ChannelCard channel={channel} />
                </li>
              ))}
            </ul>
          )
        }
      </Await>
    </>
  );
}

function ChannelCard({ channel }: { readonly channel: ChannelView }) {
  const { id, kind, enabled } = channel;
  const queries = useQueryClient();
  const [asking, setAsking] = useState(false);
  const test = useMutation({ mutationFn: () => api.testChannel(id) });
  const change = useMutation({
    mutationFn: (on: boolean) => api.switchChannel(id, on),
    onSuccess: (_answer, on) => showToast(on ? `${id} is on.` : `${id} is off: no new call goes to it.`),
    onSettled: () => {
      setAsking(false);
      return queries.invalidateQueries({ queryKey: ['channels'] });
    },
  });
  const failing = isFailing(channel);
  return (
    <article className="card channel">
      <header>
        <span className={`dot ${enabled ? (failing ? 'warn' : 'good') : ''}`} aria-hidden="true" />
        <h2>{id}</h2>
        {kind !== id && <span className="muted small">{kind}</span>}
        <Badge kind={enabled ? (failing ? 'warn' : 'good') : ''}>
          {enabled ? (failing ? 'failing' : 'enabled') : 'disabled'}
        </Badge>
        {enabled && channel.standing !== 'up' && <StandingBadge standing={channel.standing} />}
        <div className="row aside">
          <button
            type="button"
            className="button small"
            disabled={test.isPending}
            onClick={() => test.mutate()}
          >
            {test.isPending ? 'Testing…' : 'Test'}
          </button>
          <button
            type="button"
            className="button small"
            disabled={change.isPending}
            onClick={() => (enabled ? setAsking(true) : change.mutate(true))}
          >
            {enabled ? 'Disable' : 'Enable'}
          </button>
        </div>
      </header>
      <div className="body stack">
        {test.data !== undefined && <TestResult result={test.data} />}
        <Numbers channel={channel} />
        <Facts channel={channel} />
        <p className="small">
          <a href={addressOf('usage', { channel: id })}>See its calls</a>
        </p>
      </div>
      {asking && (
        <Confirm
          title={`Disable ${id}?`}
          action="Disable"
          busy={change.isPending}
          onYes={() => change.mutate(false)}
          onNo={() => setAsking(false)}
        >
          <p>
            No new call goes to this channel, on every gateway; running ones may finish. Models that only it
            serves are answered with 503.
          </p>
        </Confirm>
      )}
    </article>
  );
}

/** Results of the attempts of the last hour. */
function Numbers({ channel }: { readonly channel: ChannelView }) {
  const { failures, lastHour } = channel;
  const attempts = attemptsOf(channel);
  const failing = isFailing(channel);
  return (
    <dl className="numbers">
      <div>
        <dt>Attempts, 1 h</dt>
        <dd>{count(attempts)}</dd>
      </div>
      <div>
        <dt>Failed</dt>
        <dd className={failing ? 'bad-text' : ''} title={`${count(failures)} of ${count(attempts)}`}>
          {percent(failures, attempts)}
        </dd>
      </div>
      <div>
        <dt>p50 / p95</dt>
        <dd>
          {lastHour === undefined || lastHour.calls === 0
            ? '–'
            : `${duration(lastHour.ms[0])} / ${duration(lastHour.ms[1])}`}
        </dd>
      </div>
      <div>
        <dt>First byte p50</dt>
        <dd>{lastHour === undefined || lastHour.calls === 0 ? '–' : duration(lastHour.firstMs[0])}</dd>
      </div>
    </dl>
  );
}

function Facts({ channel }: { readonly channel: ChannelView }) {
  const { models, speaks, priority, weight, lastFailure } = channel;
  return (
    <dl className="facts">
      <dt>Models</dt>
      <dd>
        <Tags values={models} most={8} />
      </dd>
      <dt>Speaks</dt>
      <dd className="speaks">
        {Object.entries(speaks).map(([operation, formats]) => (
          <span key={operation}>
            <span className="muted">{operation}:</span> {formats.join(', ')}
          </span>
        ))}
      </dd>
      <dt>Order</dt>
      <dd>
        priority {priority}, weight {weight}
      </dd>
      {isTroubled(channel) && (
        <>
          <dt>Keys</dt>
          <dd>
            <ChannelHealth channel={channel} />
            <ResetHealth id={channel.id} />
          </dd>
        </>
      )}
      {channel.learned.length > 0 && (
        <>
          <dt>Learned</dt>
          <dd>
            <Learned learned={channel.learned} />
          </dd>
        </>
      )}
      {lastFailure !== undefined && (
        <>
          <dt>Latest failure</dt>
          <dd>
            <span className="muted" title={exactly(lastFailure.at)}>
              {ago(lastFailure.at)}, {lastFailure.model}:
            </span>{' '}
            <span className="bad-text">{lastFailure.message}</span>{' '}
            <span className="muted">({lastFailure.code})</span>
          </dd>
        </>
      )}
    </dl>
  );
}

function ResetHealth({ id }: { readonly id: string }) {
  const queries = useQueryClient();
  const reset = useMutation({
    mutationFn: () => api.resetChannel(id),
    onSuccess: () => showToast(`The health of ${id} is forgotten: it is asked again.`),
    onSettled: () => queries.invalidateQueries({ queryKey: ['channels'] }),
  });
  return (
    <button type="button" className="button small" disabled={reset.isPending} onClick={() => reset.mutate()}>
      Reset health
    </button>
  );
}

/** Settings that models refused and that are left out of requests since, with the option that makes it permanent. */
function Learned({ learned }: Pick<ChannelView, 'learned'>) {
  return (
    <ul className="stack">
      {learned.map(({ model, member, since, option }) => (
        <li key={`${model} ${member}`}>
          <span className="small">{model}</span> refuses <span className="mono small">{member}</span>{' '}
          <span className="muted small" title={exactly(since)}>
            since {ago(since)}
          </span>
          <span className="sub-block mono small">{option}</span>
        </li>
      ))}
    </ul>
  );
}

/** Returns the number of attempts at a channel in the last hour: calls that it answered, and attempts that failed. */
function attemptsOf({ failures, lastHour }: ChannelView): number {
  return failures + (lastHour === undefined ? 0 : lastHour.calls - lastHour.failed);
}

/** Returns true when more than a fifth of the attempts of the last hour failed. */
function isFailing(channel: ChannelView): boolean {
  return channel.failures > attemptsOf(channel) * 0.2;
}

/** Shows what came of a tiny call through a channel. */
export function TestResult({ result }: { readonly result: ChannelTestResult }) {
  const { ok, model, format, ms, text, error } = result;
  return (
    <div className={`notice ${ok ? '' : 'bad'}`} role="status">
      <span>
        <strong>{ok ? 'It answers.' : 'It failed.'}</strong> {model}
        {format !== undefined && `, ${format}`}, {duration(ms)}
        {error !== undefined && `: ${error.message} (${error.code}, ${error.status})`}
        {text !== undefined && text !== '' && (
          <>
            : <q>{text}</q>
          </>
        )}
      </span>
    </div>
  );
}
