/** Shows the health of a channel's keys and models. */
import type { ChannelView } from '../../../admin/schemas/index.ts';
import { Badge } from './badges.tsx';
import { ago, duration, exactly } from './text.ts';

type Standing = ChannelView['standing'];
type State = Pick<ChannelView['keys'][number], 'standing' | 'until' | 'last'>;

const kinds = { up: 'good', cooling: 'warn', resting: 'bad', probing: 'warn' } as const;

/** A key or model as it stands, in one word. */
export function StandingBadge({ standing }: { readonly standing: Standing }) {
  return <Badge kind={kinds[standing]}>{standing}</Badge>;
}

/** True when something about a channel is worth a look, and may be forgotten. */
export function isTroubled({ keys, spared }: ChannelView): boolean {
  return spared.length > 0 || keys.some(({ standing, last }) => standing !== 'up' || last !== undefined);
}

/** Shows the state of each key, and the models that are in cooldown. A key without a name is the only key. */
export function ChannelHealth({ channel: { keys, spared } }: { readonly channel: ChannelView }) {
  return (
    <ul className="stack">
      {keys.map((key) => (
        <li key={key.id}>
          <span className="mono small">{key.id === '' ? 'no key' : key.id}</span> <Telling state={key} />
        </li>
      ))}
      {spared.map((place) => (
        <li key={`${place.key} ${place.model}`}>
          <span className="small">{place.model}</span>{' '}
          {keys.length > 1 && <span className="muted mono small">{place.key}</span>} <Telling state={place} />
        </li>
      ))}
    </ul>
  );
}

function Telling({ state: { standing, until, last } }: { readonly state: State }) {
  return (
    <>
      <StandingBadge standing={standing} />
      {until !== undefined && until > Date.now() && (
        <span className="muted small"> for another {duration(until - Date.now())}</span>
      )}
      {last !== undefined && (
        <span className="sub-block">
          <span className="muted" title={exactly(last.at)}>
            {ago(last.at)}:
          </span>{' '}
          <span className="bad-text">{last.message}</span> <span className="muted">({last.code})</span>
        </span>
      )}
    </>
  );
}
