/** Destinations of alerts, with what came of the last delivery and a test. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { DestinationView } from '../../../alerts/view.ts';
import { alertsApi } from '../parts/alerts-api.ts';
import { Badge } from '../parts/badges.tsx';
import { useMay } from '../parts/may.ts';
import { Empty } from '../parts/states.tsx';
import { ago, count, exactly } from '../parts/text.ts';

const typeNames: Readonly<Record<DestinationView['type'], string>> = {
  webhook: 'webhook',
  slack: 'Slack',
  discord: 'Discord',
  teams: 'Microsoft Teams',
  pagerduty: 'PagerDuty',
  email: 'e-mail',
};

/** Shows where alerts are sent. */
export function Destinations({ destinations }: { readonly destinations: readonly DestinationView[] }) {
  return (
    <section className="card" aria-label="Destinations">
      <header>
        <h2>Destinations</h2>
      </header>
      {destinations.length === 0 ? (
        <Empty title="No destinations">
          <p>
            Alerts are shown here and sent nowhere. Add <code>destinations</code> to the plugin in the config
            file.
          </p>
        </Empty>
      ) : (
        <ul className="body destinations">
          {destinations.map((one) => (
            <Destination key={one.name} destination={one} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Destination({
  destination: { name, type, waiting, last },
}: {
  readonly destination: DestinationView;
}) {
  const queries = useQueryClient();
  const mayTest = useMay('POST /api/alerts/test');
  const test = useMutation({
    mutationFn: () => alertsApi.test(name),
    onSettled: () => queries.invalidateQueries({ queryKey: ['alerts'] }),
  });
  return (
    <li>
      <div className="row">
        <strong>{name}</strong>
        <span className="muted small">{typeNames[type]}</span>
        {last !== undefined && (
          <Badge kind={last.error === undefined ? 'good' : 'bad'}>
            {last.error === undefined ? 'delivered' : 'failed'}
          </Badge>
        )}
        {waiting > 0 && <Badge kind="warn">{count(waiting)} waiting</Badge>}
        {mayTest && (
          <button
            type="button"
            className="button small aside"
            aria-label={`Send a test to ${name}`}
            disabled={test.isPending}
            onClick={() => test.mutate()}
          >
            {test.isPending ? 'Sending…' : 'Send a test'}
          </button>
        )}
      </div>
      <p className="small muted">
        {last === undefined ? (
          'Nothing was delivered yet.'
        ) : (
          <span title={exactly(last.at)}>
            Last delivery {ago(last.at)}
            {last.error === undefined ? '.' : `: ${last.error}`}
          </span>
        )}
      </p>
      {test.data !== undefined && (
        <p className={`notice ${test.data.ok ? '' : 'bad'}`} role="status">
          {test.data.ok ? 'The test was delivered.' : `The test failed: ${test.data.error ?? ''}`}
        </p>
      )}
    </li>
  );
}
