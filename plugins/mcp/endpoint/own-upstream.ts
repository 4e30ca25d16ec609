/** Connections to servers that belong to one session. */
import { GatewayError, type PluginTools } from 'sluice';
import type { NameScheme } from './names.ts';
import type { Session } from './session.ts';
import type { Subscriptions } from './subscriptions.ts';
import { Upstream } from './upstream.ts';

/** Dependencies of these connections. */
export interface OwnUpstreamParts {
  readonly scheme: NameScheme;
  readonly tools: PluginTools;
  readonly subscriptions: Subscriptions;
}

/**
 * Returns a function that opens a connection of the session's own when it is first called: by then the client has declared its capabilities.
 * The function throws once the session has ended, because the connection would stay open.
 */
export function ownUpstream(
  session: Session,
  { name, config }: Upstream,
  { scheme, tools, subscriptions }: OwnUpstreamParts,
): () => Upstream {
  let opened: Upstream | undefined;
  return () => {
    if (opened !== undefined) return opened;
    if (session.isClosed) throw new GatewayError('not_found', 'The session has ended.');
    const { sampling, elicitation, roots } = session.server.getClientCapabilities() ?? {};
    opened = new Upstream({
      name,
      config,
      scheme,
      tools,
      capabilities: {
        ...(sampling === undefined ? {} : { sampling }),
        ...(elicitation === undefined ? {} : { elicitation }),
        ...(roots === undefined ? {} : { roots }),
      },
      events: {
        changed: (_, kind) => session.changed(kind),
        updated: (upstream, uri) => subscriptions.updated(upstream, uri),
        ended: (upstream) => subscriptions.renew(upstream),
        notified: (upstream, notification) => session.passNotification(upstream, notification),
        prepare: (upstream, client) => session.passRequests(upstream, client),
      },
    });
    session.own.push(opened);
    return opened;
  };
}
