/** Subscriptions of clients to resources. A server is subscribed to once, for as long as any client is. */
import { GatewayError } from 'sluice';
import type { ToolServer } from '../servers/index.ts';
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
    const { subscribed } = session;
    if (!isOn) {
      if (subscribed.delete(uri)) await this.#release(uri, server);
      return;
    }
    if (subscribed.size >= maxOfSession)
      throw new GatewayError('invalid_request', `A session can subscribe to ${maxOfSession} resources.`);
    await server.run((client, options) => client.subscribeResource({ uri }, options));
    subscribed.set(uri, server);
  }

  /** Ends the subscriptions of a session that has ended. */
  async end({ subscribed }: Session): Promise<void> {
    const held = [...subscribed];
    subscribed.clear();
    await Promise.allSettled(held.map(([uri, server]) => this.#release(uri, server)));
  }

  /** Unsubscribes from a server that no session is subscribed to any more. */
  async #release(uri: string, server: ToolServer): Promise<void> {
    const isWanted = [...this.#sessions].some(({ subscribed }) => subscribed.get(uri) === server);
    if (!isWanted) await server.run((client, options) => client.unsubscribeResource({ uri }, options));
  }
}
