/** A user's own sessions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../parts/api.ts';
import { Badge } from '../parts/badges.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { endSession } from '../parts/end-session.ts';
import { Await } from '../parts/states.tsx';
import { exactly, toTheMinute } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';

/** Lists the sessions; each can be ended, or all of them. */
export function OwnSessions() {
  const queries = useQueryClient();
  const sessions = useQuery({ queryKey: ['own-sessions'], queryFn: api.ownSessions });
  const [isAsking, setAsking] = useState(false);
  const end = useMutation({
    mutationFn: (id: string) => api.endOwnSession(id),
    onSuccess: () => showToast('The session is over.'),
    onSettled: () => queries.invalidateQueries({ queryKey: ['own-sessions'] }),
  });
  const endAll = useMutation({
    mutationFn: () => api.endOwnSessions(),
    onSuccess: () => endSession(queries),
  });
  return (
    <section className="card" aria-label="Sessions">
      <header>
        <h2>Sessions</h2>
      </header>
      <div className="body stack">
        <Await query={sessions} what="your sessions">
          {(list) => (
            <ul className="lines">
              {list.sessions.map(({ session, createdAt, expiresAt, current }) => (
                <li key={session}>
                  <span>
                    <span className="nowrap" title={exactly(createdAt)}>
                      Since {toTheMinute(createdAt)}
                    </span>
                    <span className="sub">until {toTheMinute(expiresAt)} unless used</span>
                  </span>
                  {current ? (
                    <Badge kind="accent">this one</Badge>
                  ) : (
                    <button
                      type="button"
                      className="button small"
                      disabled={end.isPending}
                      aria-label={`End the session ${session}`}
                      onClick={() => end.mutate(session)}
                    >
                      End
                    </button>
                  )}
                </li>
              ))}
            </ul>
          )}
        </Await>
        <div className="row">
          <button type="button" className="button danger" onClick={() => setAsking(true)}>
            Sign out everywhere
          </button>
        </div>
      </div>
      {isAsking && (
        <Confirm
          title="Sign out everywhere?"
          action="Sign out"
          busy={endAll.isPending}
          onYes={() => endAll.mutate()}
          onNo={() => setAsking(false)}
        >
          <p>All of your sessions end, this one too.</p>
        </Confirm>
      )}
    </section>
  );
}
