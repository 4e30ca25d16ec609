import { expect } from 'vitest';
import type { z } from 'zod';
import { routes, type RouteName } from '../../../plugins/admin/routes.ts';
import { failure } from '../../../plugins/admin/schemas/index.ts';

/** The admin password of gateways in these tests. */
export const adminPassword = 'a long enough password';

/** Response of the admin API with the body type of its route. */
export interface AdminResponse<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

type BodyOf<Name extends RouteName> = z.output<(typeof routes)[Name]['answer']>;

/** Options of a request besides its route. */
export interface Words {
  readonly id?: string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A page of the admin API, as a browser would hold it. */
export interface Admin {
  readonly cookie: string;
  readonly csrfToken: string;
  /** Sends a request. Throws unless it succeeds. */
  request<Name extends RouteName>(name: Name, words?: Words): Promise<BodyOf<Name>>;
  /** Sends a request. Throws unless it is refused. */
  refused(name: RouteName, words?: Words): Promise<AdminResponse<z.output<typeof failure>>>;
  /** Sends a request and returns the response, whatever its status. */
  send(name: RouteName, words?: Words): Promise<Response>;
}

/** Logs in with the admin password. */
export function logIn(url: string, password = adminPassword): Promise<Admin> {
  return enter(url, 'login', { password });
}

/** Signs a user in. */
export function signIn(url: string, email: string, password: string): Promise<Admin> {
  return enter(url, 'sign-in', { email, password });
}

async function enter(url: string, way: string, proof: object): Promise<Admin> {
  const response = await fetch(`${url}/api/admin/${way}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(proof),
  });
  expect(response.status).toBe(200);
  const { csrfToken } = routes.login.answer.parse(await response.json());
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? '';

  const send = (name: RouteName, { id = '', query, body, headers }: Words = {}): Promise<Response> => {
    const { method, path } = routes[name];
    const search = new URLSearchParams();
    for (const [one, value] of Object.entries(query ?? {})) search.set(one, String(value));
    const init: RequestInit = {
      method,
      headers: {
        cookie,
        ...(method === 'GET' ? {} : { 'x-csrf-token': csrfToken }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    };
    if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body);
    return fetch(`${url}${path.replace(':id', encodeURIComponent(id))}?${search}`, init);
  };

  return {
    cookie,
    csrfToken,
    send,
    async request<Name extends RouteName>(name: Name, words?: Words) {
      const answer = await send(name, words);
      const body: unknown = await answer.json();
      expect({ status: answer.status, body }).toMatchObject({
        status: 'status' in routes[name] ? routes[name].status : 200,
      });
      // Nothing but what is promised: whatever is not would be stripped, and missed here.
      const read = routes[name].answer.parse(body);
      expect(read).toEqual(body);
      return read as BodyOf<Name>;
    },
    async refused(name, words) {
      const answer = await send(name, words);
      const body = failure.parse(await answer.json());
      expect(answer.status).toBeGreaterThanOrEqual(400);
      return { status: answer.status, headers: answer.headers, body };
    },
  };
}
