/** Alerts: what is open, what is over, and where alerts are sent. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { AlertsView, AlertView } from '../../../alerts/view.ts';
import { alertsApi } from '../parts/alerts-api.ts';
import { Badge } from '../parts/badges.tsx';
import { Segments } from '../parts/fields.tsx';
import { useMay } from '../parts/may.ts';
import { addressOf, changeQuery, useRoute } from '../parts/router.ts';
import { Await, Empty } from '../parts/states.tsx';
import { ago, count, duration, exactly } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';
import { Destinations } from './alert-destinations.tsx';

const kindNames: Readonly<Partial<Record<AlertView['kind'], string>>> = {
  budget: 'Budget',
  'channel-down': 'Channel down',
  'error-rate': 'Error rate',
  expiry: 'Expiry',
  'reload-refused': 'Reload refused',
  'database-lost': 'Database lost',
  'shared-store-lost': 'Shared store lost',
  'upkeep-behind': 'Upkeep behind',
  'worker-died': 'Worker died',
};

const severityKinds = { info: 'accent', warning: 'warn', critical: 'bad' } as const;

/** Minutes for which an alert can be muted. */
const mutings = [
  [60, '1 hour'],
  [480, '8 hours'],
  [1_440, '1 day'],
  [10_080, '1 week'],
] as const;

/** The view of the alerts. */
export function Alerts() {
  const { query } = useRoute();
  const shown = query.get('show') === 'past' ? 'past' : 'open';
  const alerts = useQuery({ queryKey: ['alerts'], queryFn: alertsApi.read, refetchInterval: 5_000 });
  return (
    <>
      <header>
        <h1>Alerts</h1>
        {alerts.data !== undefined && (
          <p>
            {alerts.data.throttle === 0
              ? 'An alert is sent each time it opens.'
              : `An alert is sent at most once in ${spanOf(alerts.data.throttle)}, and again when it becomes more severe.`}
          </p>
        )}
      </header>
      <Await query={alerts} what="the alerts">
        {(data) => {
          const open = data.alerts.filter(({ state }) => state === 'firing');
          const past = data.alerts.filter(({ state }) => state === 'resolved');
          const listed = shown === 'open' ? open : past;
          return (
            <>
              <Segments
                label="Which alerts"
                options={[
                  ['open', `Open (${count(open.length)})`],
                  ['past', `Past (${count(past.length)})`],
                ]}
                value={shown}
                onChange={(next) => changeQuery({ show: next }, 'replace')}
              />
              <div className="card">
                {listed.length === 0 ? (
                  <Empty title={shown === 'open' ? 'No open alerts' : 'No past alerts'}>
                    {shown === 'open' && <p>No problems found.</p>}
                  </Empty>
                ) : (
                  <ul className="alerts" aria-label={shown === 'open' ? 'Open alerts' : 'Past alerts'}>
                    {listed.map((alert) => (
                      <AlertItem key={alert.id} alert={alert} data={data} />
                    ))}
                  </ul>
                )}
              </div>
              <Muted data={data} />
              <Destinations destinations={data.destinations} />
            </>
          );
        }}
      </Await>
    </>
  );
}

/** Returns milliseconds in whole hours or minutes where they are such. */
function spanOf(ms: number): string {
  const [unit, size] = ms % 3_600_000 === 0 ? (['hour', 3_600_000] as const) : (['minute', 60_000] as const);
  if (ms % size !== 0) return duration(ms);
  const number = ms / size;
  return number === 1 ? `1 ${unit}` : `${number} ${unit}s`;
}

/** Changes the alerts and shows them as they are then. */
function useAlertChange() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ run }: { readonly run: () => Promise<AlertsView>; readonly done: string }) => run(),
    onSuccess: (data, { done }) => {
      queries.setQueryData(['alerts'], data);
      showToast(done);
    },
  });
}

function AlertItem({ alert, data }: { readonly alert: AlertView; readonly data: AlertsView }) {
  const { id, kind, severity, state, subject, text, since, resolvedAt, acknowledgedAt, acknowledgedBy } =
    alert;
  const mayChange = useMay('POST /api/alerts/acknowledge');
  const change = useAlertChange();
  const isOpen = state === 'firing';
  const isMuted = data.mutes.some((mute) => mute.id === id || mute.kind === kind);
  return (
    <li>
      <div className="row">
        <Badge kind={isOpen ? severityKinds[severity] : ''}>{severity}</Badge>
        <strong>{kindNames[kind] ?? kind}</strong>
        {acknowledgedAt !== undefined && <Badge kind="good">acknowledged</Badge>}
        {isMuted && <Badge>muted</Badge>}
        <span className="muted small" title={exactly(since)}>
          {isOpen ? `since ${ago(since)}` : `from ${exactly(since)}, over ${ago(resolvedAt)}`}
          {alert.count > 1 && `, ${count(alert.count)} times`}
        </span>
      </div>
      <p>
        {text} <a href={addressOf(alert.view)}>Show more</a>
      </p>
      <p className="muted small">
        <span className="mono">{subject}</span>. {sentWords(alert, data.throttle)}
        {acknowledgedAt !== undefined &&
          ` Acknowledged ${ago(acknowledgedAt)}${acknowledgedBy === undefined ? '' : ` by ${acknowledgedBy}`}.`}
      </p>
      {isOpen && mayChange && (
        <div className="row">
          {acknowledgedAt === undefined && (
            <button
              type="button"
              className="button small"
              aria-label={`Acknowledge ${subject}`}
              disabled={change.isPending}
              onClick={() =>
                change.mutate({
                  run: () => alertsApi.acknowledge(id),
                  done: 'The alert is acknowledged: it is not sent again until it has closed.',
                })
              }
            >
              Acknowledge
            </button>
          )}
          {!isMuted && (
            <select
              className="small"
              aria-label={`Mute ${subject}`}
              value=""
              disabled={change.isPending}
              onChange={({ target }) => {
                // Read now: the field is empty again when the request is made.
                const minutes = Number(target.value);
                change.mutate({ run: () => alertsApi.mute({ id }, minutes), done: 'The alert is muted.' });
              }}
            >
              <option value="">Mute…</option>
              {mutings.map(([minutes, words]) => (
                <option key={minutes} value={minutes}>
                  for {words}
                </option>
              ))}
            </select>
          )}
        </div>
      )}
    </li>
  );
}

/** Says when an alert was sent, and until when it is not sent again. */
function sentWords({ notifiedAt, state, acknowledgedAt }: AlertView, throttle: number): string {
  if (notifiedAt === undefined) return 'Not sent.';
  const until = notifiedAt + throttle;
  const isThrottled = state === 'firing' && acknowledgedAt === undefined && until > Date.now();
  return `Sent ${ago(notifiedAt)}${isThrottled ? `, not again before ${exactly(until)}` : ''}.`;
}

function Muted({ data: { mutes } }: { readonly data: AlertsView }) {
  const mayChange = useMay('POST /api/alerts/mute');
  const change = useAlertChange();
  if (mutes.length === 0) return null;
  return (
    <section className="card" aria-label="Muted">
      <header>
        <h2>Muted</h2>
      </header>
      <ul className="body stack">
        {mutes.map(({ id, kind, until }) => {
          const what = id ?? (kind === undefined ? '' : (kindNames[kind] ?? kind));
          return (
            <li key={`${id} ${kind}`} className="row">
              <span className="mono small">{what}</span>
              <span className="muted small">until {exactly(until)}</span>
              {mayChange && (
                <button
                  type="button"
                  className="button small"
                  aria-label={`End the muting of ${what}`}
                  disabled={change.isPending}
                  onClick={() =>
                    change.mutate({
                      run: () =>
                        alertsApi.mute(id === undefined ? (kind === undefined ? {} : { kind }) : { id }, 0),
                      done: 'It is no longer muted.',
                    })
                  }
                >
                  End it
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
