/** Subscriptions of clients to resources. A server is subscribed to once, for as long as any client is. */
import { GatewayError } from 'sluice';
import type { Session } from './session.ts';
import type { Upstream } from './upstream.ts';

/** Maximum number of resources to which one session subscribes. */
const maxOfSession = 200;

/** Keeps subscriptions of all sessions. */
export class Subscriptions {
  readonly #sessions: Iterable<Session>;

  constructor(sessions: Iterable<Session>) {
    this.#sessions = sessions;
  }

  /** Subscribes a session, or ends that. */
  async set(session: Session, { server }: Upstream, uri: string, isOn: boolean): Promise<void> {
    if (!isOn) {
      session.subscribed.delete(uri);
      const isWanted = [...this.#sessions].some(({ subscribed }) => subscribed.has(uri));
      if (!isWanted) await server.run((client, options) => client.unsubscribeResource({ uri }, options));
      return;
    }
    if (session.subscribed.size >= maxOfSession)
      throw new GatewayError('invalid_request', `A session can subscribe to ${maxOfSession} resources.`);
    await server.run((client, options) => client.subscribeResource({ uri }, options));
    session.subscribed.add(uri);
  }
}
