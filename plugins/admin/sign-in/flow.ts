/** A sign-in on its way through the browser: a sealed cookie of ten minutes, which counts once. */
import { hash } from 'node:crypto';
import type { RouteContext, Stores, Sealer } from 'sluice';
import type { FlowSecrets } from './provider.ts';
import { SignInRefused } from './problems.ts';

const cookieName = 'sluice-sign-in';
const purpose = 'sign-in';
const path = '/api/admin/sign-in';

/** Time limit for a sign-in in milliseconds. */
const lifetime = 600_000;

/** A sign-in that has begun. */
export interface Flow extends FlowSecrets {
  /** Path of the page to which the browser goes afterwards. */
  readonly returnTo: string;
}

/** Stores pending sign-ins in the browser that began them. */
export class Flows {
  readonly #sealer: Sealer;
  readonly #stores: Pick<Stores, 'add'>;

  constructor(sealer: Sealer, stores: Pick<Stores, 'add'>) {
    this.#sealer = sealer;
    this.#stores = stores;
  }

  /** Sets the sign-in cookie. It is `lax`, because the browser must also send it when the provider redirects back. */
  keep({ cookies }: RouteContext, provider: string, flow: Flow, overHttps: boolean): void {
    cookies.secure = overHttps;
    const sealed = this.#sealer.seal(purpose, provider, { ...flow, until: Date.now() + lifetime });
    cookies.set(cookieName, sealed, { path, sameSite: 'lax', overwrite: true, maxAge: lifetime });
  }

  /** Consumes this browser's sign-in with this state. Throws {@link SignInRefused} when there is none, it is too old, or it was used before. */
  async take({ cookies }: RouteContext, provider: string, state: string, overHttps: boolean): Promise<Flow> {
    const sealed = cookies.get(cookieName);
    cookies.secure = overHttps;
    cookies.set(cookieName, null, { path, sameSite: 'lax', overwrite: true });
    const opened = sealed === undefined ? undefined : this.#sealer.open(purpose, provider, sealed);
    if (opened === undefined || opened['state'] !== state)
      throw new SignInRefused('expired', 'The browser brought no sign-in, or one with another state.');
    const flow = opened as unknown as Flow & { readonly until: number };
    if (flow.until < Date.now()) throw new SignInRefused('expired', 'The sign-in took over ten minutes.');
    const isFirst = await this.#stores.add('sign-in-used', hash('sha256', flow.state), 1, lifetime);
    if (!isFirst) throw new SignInRefused('expired', 'The sign-in was used before.');
    return flow;
  }
}

/** Returns a path of the page for whatever a request asks to return to: the start of the page, unless it is one of its views. */
export function pathOfPage(wanted: string | undefined): string {
  return wanted !== undefined && /^\/dashboard\/#\/[\w/?=&%.,:+-]{0,400}$/.test(wanted)
    ? wanted
    : '/dashboard/';
}
