import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, type FunctionComponent } from 'react';
import type { Session } from '../../admin/schemas/index.ts';
import { api, whenSignedOut } from './parts/api.ts';
import { endSession } from './parts/end-session.ts';
import { GatewayNotices } from './parts/gateway-state.tsx';
import { Icon, Mark, type IconName } from './parts/icons.tsx';
import type { Operation } from './parts/may.ts';
import { useRoute } from './parts/router.ts';
import { Failed, Loading } from './parts/states.tsx';
import { nextTheme, useTheme } from './parts/theme.ts';
import { Account } from './views/account.tsx';
import { Alerts } from './views/alerts.tsx';
import { Audit } from './views/audit.tsx';
import { Channels } from './views/channels.tsx';
import { Config } from './views/config.tsx';
import { FirstSteps, FirstStepsCard } from './views/first-steps.tsx';
import { Invitation } from './views/invitation.tsx';
import { Keys } from './views/keys.tsx';
import { Live } from './views/live.tsx';
import { Login } from './views/login.tsx';
import { Models } from './views/models.tsx';
import { Overview } from './views/overview.tsx';
import { Owners } from './views/owners.tsx';
import { Playground } from './views/playground.tsx';
import { Processes } from './views/processes.tsx';
import { Spend } from './views/spend.tsx';
import { Tokens } from './views/tokens.tsx';
import { UsageLog } from './views/usage-log.tsx';
import { Users } from './views/users.tsx';

interface ViewEntry {
  readonly name: IconName;
  readonly title: string;
  readonly View: FunctionComponent;
  /** The operation without which the view has nothing to show. */
  readonly needs?: Operation;
}

const views: readonly ViewEntry[] = [
  { name: 'overview', title: 'Overview', View: Overview, needs: 'overview' },
  { name: 'live', title: 'Live calls', View: Live, needs: 'live' },
  { name: 'spend', title: 'Spend', View: Spend, needs: 'sumUsage' },
  { name: 'usage', title: 'Usage log', View: UsageLog, needs: 'listUsage' },
  { name: 'keys', title: 'API keys', View: Keys, needs: 'listKeys' },
  { name: 'owners', title: 'Organisations and teams', View: Owners, needs: 'listOwners' },
  { name: 'channels', title: 'Channels', View: Channels, needs: 'listChannels' },
  { name: 'config', title: 'Configuration', View: Config, needs: 'listConfig' },
  { name: 'models', title: 'Models and prices', View: Models, needs: 'listModels' },
  { name: 'playground', title: 'Playground', View: Playground, needs: 'listModels' },
  { name: 'alerts', title: 'Alerts', View: Alerts, needs: 'GET /api/alerts' },
  { name: 'processes', title: 'Processes', View: Processes, needs: 'status' },
  { name: 'users', title: 'Users', View: Users, needs: 'listUsers' },
  { name: 'tokens', title: 'Admin tokens', View: Tokens, needs: 'listTokens' },
  { name: 'audit', title: 'Audit log', View: Audit, needs: 'listAudit' },
  { name: 'guide', title: 'First steps', View: FirstSteps, needs: 'createConfig' },
];

/** Separate from the other views, because it is about the signed-in user. */
const account: ViewEntry = { name: 'account', title: 'Your account', View: Account };

/** The login, or the view that the address names inside the frame. */
export function App() {
  const queries = useQueryClient();
  const route = useRoute();
  const session = useQuery({ queryKey: ['session'], queryFn: api.session, staleTime: Infinity });
  useEffect(() => whenSignedOut(() => endSession(queries)), [queries]);
  if (session.data === undefined) {
    return (
      <main className="login">
        {session.error === null ? (
          <Loading what="the dashboard" />
        ) : (
          <Failed error={session.error} again={() => void session.refetch()} />
        )}
      </main>
    );
  }
  if (session.data !== null) return <Frame session={session.data} />;
  const [, token] = /^invitation\/(.+)$/.exec(route.view) ?? [];
  return token === undefined ? <Login /> : <Invitation token={token} />;
}

function Frame({ session }: { readonly session: Session }) {
  const route = useRoute();
  const allowed = views.filter(({ needs }) => needs === undefined || session.may.includes(needs));
  const isUser = session.actor?.kind === 'user';
  const { name, title, View } =
    [...allowed, ...(isUser ? [account] : [])].find((view) => view.name === route.view) ?? allowed[0]!;
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  return (
    <div className="frame">
      <a
        className="skip"
        href="#view"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>('#view')?.focus();
        }}
      >
        To the content
      </a>
      <Rail current={name} views={allowed} who={session.actor?.name} isUser={isUser} />
      <main id="view" className="view" tabIndex={-1}>
        {session.may.includes('status') && <GatewayNotices />}
        {name === 'overview' && <FirstStepsCard />}
        <View key={name} />
      </main>
    </div>
  );
}

function Rail({
  current,
  views: shown,
  who,
  isUser,
}: {
  readonly current: string;
  readonly views: readonly ViewEntry[];
  readonly who: string | undefined;
  /** False for the admin password, which has no account. */
  readonly isUser: boolean;
}) {
  const queries = useQueryClient();
  const theme = useTheme();
  const rail = useRef<HTMLElement>(null);
  // On phones the rail is a row that scrolls sideways: the current view's link comes to its middle.
  useEffect(() => {
    const link = rail.current?.querySelector('[aria-current]')?.getBoundingClientRect();
    const box = rail.current?.getBoundingClientRect();
    if (link !== undefined && box !== undefined)
      rail.current?.scrollBy({ left: link.left + link.width / 2 - (box.left + box.width / 2) });
  }, [current]);
  const leave = async (): Promise<void> => {
    const left = await api.logout().catch(() => undefined);
    if (left?.location !== undefined) window.location.assign(left.location);
    endSession(queries);
  };
  return (
    <header className="rail" ref={rail}>
      <a className="brand" href="#/overview" aria-label="Sluice">
        <Mark />
        <span>Sluice</span>
      </a>
      <nav aria-label="Views">
        <ul>
          {shown.map(({ name, title }) => (
            <li key={name}>
              <a href={`#/${name}`} aria-current={name === current ? 'page' : undefined}>
                <Icon name={name} />
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div className="foot">
        {isUser && (
          <a
            href="#/account"
            aria-label="Your account"
            aria-current={current === 'account' ? 'page' : undefined}
            title={who}
          >
            <Icon name="account" />
            <span>Your account</span>
          </a>
        )}
        <button type="button" onClick={nextTheme} aria-label={`Theme: ${theme}. Change it`}>
          <Icon name="theme" />
          <span>Theme: {theme}</span>
        </button>
        <button type="button" onClick={() => void leave()} aria-label="Log out" title={who}>
          <Icon name="leave" />
          <span>Log out</span>
        </button>
      </div>
    </header>
  );
}
