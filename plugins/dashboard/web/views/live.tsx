import { useEffect, useState } from 'react';
import type { LiveCall, LiveFrame } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge, Formats, Status } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { addressOf } from '../parts/router.ts';
import { Empty, Failed, Loading } from '../parts/states.tsx';
import { count, duration, when } from '../parts/text.ts';

/** Calls that have ended and are still shown. */
const kept = 100;

interface View {
  readonly state: 'connecting' | 'open' | 'lost';
  readonly running: number;
  readonly skipped: number;
  /** Newest first. */
  readonly calls: readonly LiveCall[];
}

/** Follows the live stream; the browser opens it again by itself when the connection breaks. */
function useLive(paused: boolean, attempt: number): View {
  const [view, setView] = useState<View>({ state: 'connecting', running: 0, skipped: 0, calls: [] });
  useEffect(() => {
    if (paused) return undefined;
    const source = new EventSource('/api/admin/live');
    const take = (fresh: boolean) => (event: MessageEvent<string>) => {
      const frame = JSON.parse(event.data) as LiveFrame;
      setView((before) => {
        // After a reconnect the snapshot has all running calls. Earlier calls that are not in it have ended meanwhile.
        const old = fresh ? before.calls.filter(({ phase }) => phase === 'ended') : before.calls;
        const byId = new Map(old.map((call) => [call.id, call]));
        for (const call of frame.calls) byId.set(call.id, call);
        const all = [...byId.values()].toSorted((a, b) => b.at - a.at);
        const ended = all.filter(({ phase }) => phase === 'ended').slice(0, kept);
        const calls = [...all.filter(({ phase }) => phase !== 'ended'), ...ended];
        const skipped = (fresh ? 0 : before.skipped) + (frame.skipped ?? 0);
        return { state: 'open', running: frame.running, skipped, calls };
      });
    };
    source.addEventListener('snapshot', take(true));
    source.addEventListener('calls', take(false));
    source.addEventListener('error', () => {
      const state = source.readyState === EventSource.CLOSED ? 'lost' : 'connecting';
      setView((before) => ({ ...before, state }));
      // A session that has ended leads back to the login.
      if (state === 'lost') void api.session().catch(() => undefined);
    });
    return () => source.close();
  }, [paused, attempt]);
  return view;
}

const columns: readonly Column<LiveCall>[] = [
  {
    id: 'phase',
    title: 'State',
    show: ({ phase, status, code }) =>
      phase === 'ended' ? (
        <Status status={status} code={code} />
      ) : (
        <Badge kind={phase === 'answering' ? 'accent' : ''}>
          <span className={`dot pulse ${phase === 'answering' ? 'good' : ''}`} />
          {phase}
        </Badge>
      ),
  },
  {
    id: 'at',
    title: 'Since',
    sortBy: ({ at }) => at,
    show: ({ at }) => <span className="time">{when(at)}</span>,
  },
  {
    id: 'key',
    wide: true,
    title: 'API key',
    sortBy: ({ keyName }) => keyName,
    show: ({ keyName, keyId }) => (
      <span className="truncate" title={keyName}>
        {keyName ?? keyId ?? '–'}
      </span>
    ),
  },
  {
    id: 'model',
    title: 'Model',
    sortBy: ({ model }) => model,
    show: ({ model, upstreamModel, operation }) => (
      <>
        <span className="truncate" title={model}>
          {model ?? '–'}
        </span>
        <span className="sub">
          {operation === 'chat' ? '' : operation}
          {upstreamModel !== undefined && upstreamModel !== model ? ` as ${upstreamModel}` : ''}
        </span>
      </>
    ),
  },
  {
    id: 'channel',
    wide: true,
    title: 'Channel',
    sortBy: ({ channel }) => channel,
    show: ({ channel, failedAttempts }) => (
      <>
        <span className="truncate" title={channel}>
          {channel ?? '–'}
        </span>
        {failedAttempts !== undefined && failedAttempts.length > 0 && (
          <span className="sub warn-text" title={failedAttempts.join('\n')}>
            {failedAttempts.length} failed before
          </span>
        )}
      </>
    ),
  },
  {
    id: 'format',
    wide: true,
    title: 'Format',
    sortBy: ({ format }) => format,
    show: (call) => <Formats call={call} />,
  },
  {
    id: 'first',
    wide: true,
    title: 'First byte',
    kind: 'number',
    sortBy: ({ firstMs }) => firstMs,
    show: ({ firstMs }) => duration(firstMs),
  },
  {
    id: 'ms',
    title: 'Duration',
    kind: 'number',
    sortBy: ({ ms }) => ms,
    show: (call) => <Running call={call} />,
  },
  {
    id: 'tokens',
    wide: true,
    title: 'Tokens',
    kind: 'number',
    sortBy: ({ output }) => output,
    show: ({ input, output }) =>
      input === undefined && output === undefined ? '–' : `${count(input ?? 0)} → ${count(output ?? 0)}`,
  },
  {
    id: 'ip',
    wide: 'extra',
    title: 'From',
    sortBy: ({ ip }) => ip,
    show: ({ ip }) => <span className="mono">{ip}</span>,
  },
];

function Running({ call: { phase, at, ms } }: { readonly call: LiveCall }) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (phase === 'ended') return undefined;
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => clearInterval(timer);
  }, [phase]);
  return phase === 'ended' ? (
    duration(ms)
  ) : (
    <span className="muted">{duration(Math.max(0, Date.now() - at))}</span>
  );
}

/** Calls as they run, and those that have just ended. */
export function Live() {
  const [paused, setPaused] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const { state, running, skipped, calls } = useLive(paused, attempt);
  return (
    <>
      <header>
        <h1>Live calls</h1>
        <p className="row" role="status">
          <span
            className={`dot ${paused ? '' : state === 'open' ? 'good pulse' : state === 'lost' ? 'bad' : 'warn'}`}
          />
          {paused
            ? 'paused'
            : state === 'open'
              ? `${count(running)} running`
              : state === 'lost'
                ? 'disconnected'
                : 'connecting'}
        </p>
        <div className="actions">
          <button type="button" className="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {paused ? 'Go on' : 'Pause'}
          </button>
        </div>
      </header>
      {skipped > 0 && (
        <p className="notice warn">
          {count(skipped)} changes were too many to be shown. The usage log has them all.
        </p>
      )}
      <div className="card">
        {calls.length > 0 ? (
          <DataTable
            label="Live calls"
            columns={columns}
            rows={calls}
            rowId={({ id }) => id}
            onOpen={({ id, phase }) => {
              if (phase === 'ended') location.hash = addressOf('usage', { call: id });
            }}
          />
        ) : state === 'lost' ? (
          <Failed
            error={new Error('The stream of live calls was closed by the gateway.')}
            again={() => setAttempt(attempt + 1)}
          />
        ) : state === 'connecting' && !paused ? (
          <Loading what="live calls" />
        ) : (
          <Empty title="Nothing runs just now">
            <p>Calls appear here when they come in, and stay a while when they have ended.</p>
          </Empty>
        )}
      </div>
    </>
  );
}
