/** An operator who has logged in to the admin API of a gateway of any version. */

type Json = Readonly<Record<string, unknown>>;

/** Asks the admin API. Throws for any response that is no success. */
export type Admin = (
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body?: object,
) => Promise<Json>;

/** A worker that was replaced ends with its last connection, which `fetch` would keep. */
const closing = { connection: 'close' };

/** Logs in with the admin password. */
export async function administer(url: string, password: string): Promise<Admin> {
  const login = await fetch(`${url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...closing },
    body: JSON.stringify({ password }),
  });
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? '';
  const { csrfToken } = (await login.json()) as { readonly csrfToken: string };
  return async (method, path, body) => {
    const needsBody = method === 'POST' || method === 'PATCH';
    const response = await fetch(`${url}/api/admin/${path}`, {
      method,
      headers: { cookie, 'x-csrf-token': csrfToken, 'content-type': 'application/json', ...closing },
      ...(needsBody ? { body: JSON.stringify(body ?? {}) } : {}),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? {} : (JSON.parse(text) as Json);
  };
}
