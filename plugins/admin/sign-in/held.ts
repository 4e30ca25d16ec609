/** Record of a session that began at a provider: its subject there, and the sealed tokens to ask and to sign out with. */
import type { Stores, Sealer } from 'sluice';
import { entriesOf } from 'sluice/internal';
import type { Proved } from './provider.ts';

const namespace = 'sign-in-sessions';
const purpose = 'sign-in-session';

/** Record of one session. */
export interface HeldSession {
  readonly user: string;
  /** Id of the provider in the options. */
  readonly provider: string;
  readonly issuer: string;
  readonly subject: string;
  /** Id of the session at the provider. */
  readonly providerSession?: string;
  /** Time at which the provider is queried again, in milliseconds since 1970. Absent without a refresh token. */
  readonly checkAt?: number;
  readonly sealed: string;
}

/** The tokens of a session. */
export interface HeldTokens {
  readonly refreshToken?: string | undefined;
  readonly idToken?: string | undefined;
}

/** Sessions that began at a provider, shared by all gateways on one database. */
export class HeldSessions {
  readonly #stores: Stores;
  readonly #sealer: Sealer;
  readonly #lifetime: number;
  readonly #kept;

  /** `lifetime`: for how many milliseconds a session lasts at the most. A record that went before its session could not end it. */
  constructor(stores: Stores, sealer: Sealer, lifetime: number) {
    this.#stores = stores;
    this.#sealer = sealer;
    this.#lifetime = lifetime;
    this.#kept = stores.namespace<HeldSession>(namespace);
  }

  async keep(
    session: string,
    user: string,
    provider: string,
    proved: Proved,
    checkAfter: number,
  ): Promise<void> {
    const { person } = proved;
    const held: HeldSession = {
      user,
      provider,
      issuer: person.issuer,
      subject: person.subject,
      ...(person.session === undefined ? {} : { providerSession: person.session }),
      ...(proved.refreshToken === undefined ? {} : { checkAt: Date.now() + checkAfter }),
      sealed: this.#seal(session, proved),
    };
    await this.#kept.set(session, held, this.#lifetime);
  }

  /** Removes the record of a session and returns it. */
  async drop(
    session: string,
  ): Promise<{ readonly held: HeldSession; readonly tokens: HeldTokens } | undefined> {
    const held = await this.#kept.get(session);
    if (held === undefined) return undefined;
    await this.#kept.delete(session);
    return { held, tokens: this.tokens(session, held) };
  }

  /** Returns the records by session id. */
  async all(): Promise<ReadonlyMap<string, HeldSession>> {
    const found = new Map<string, HeldSession>();
    for await (const [id, held] of entriesOf(this.#kept)) if (held !== undefined) found.set(id, held);
    return found;
  }

  /** Claims a session that is due, so that no other gateway asks the provider about it. Returns false where another has. */
  async claim(session: string, after: number): Promise<boolean> {
    const now = Date.now();
    const claimed = await this.#stores.change<HeldSession>(namespace, session, (held) =>
      held.checkAt === undefined || held.checkAt > now
        ? undefined
        : { value: { ...held, checkAt: now + after }, ttl: this.#lifetime },
    );
    return claimed !== undefined;
  }

  /** Replaces the tokens of a session, unless it has ended meanwhile. */
  async renew(session: string, proved: Proved): Promise<void> {
    await this.#stores.change<HeldSession>(namespace, session, (held) => {
      const old = this.tokens(session, held);
      const sealed = this.#seal(session, { ...proved, idToken: proved.idToken ?? old.idToken });
      return { value: { ...held, sealed }, ttl: this.#lifetime };
    });
  }

  tokens(session: string, held: HeldSession): HeldTokens {
    return this.#sealer.open(purpose, session, held.sealed) ?? {};
  }

  #seal(session: string, { refreshToken, idToken }: HeldTokens): string {
    return this.#sealer.seal(purpose, session, {
      ...(refreshToken === undefined ? {} : { refreshToken }),
      ...(idToken === undefined ? {} : { idToken }),
    });
  }
}
