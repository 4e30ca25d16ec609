/** Asks gateways of any version: as a client with a key, and as an operator of the admin API. */

/** A JSON object of a response. */
export type Json = Readonly<Record<string, unknown>>;

/** The password of the admin API of these gateways. */
export const adminPassword = 'databases of releases';

/** A worker that was replaced answers once more, with its configuration, on a connection that `fetch` would keep. */
const closing = { connection: 'close' };

/** A response, and its body as JSON; empty for other bodies. */
export interface Answer {
  readonly status: number;
  readonly body: Json;
}

/** Sends a request with a key. A body is sent as JSON, and a form as one. */
export async function sendRequest(
  url: string,
  key: string,
  path: string,
  body?: object | FormData,
  method = body === undefined ? 'GET' : 'POST',
): Promise<Answer> {
  const isForm = body instanceof FormData;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...closing,
      ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: parsed(await response.text()) };
}

/** Logs in to the admin API. Returns a function that asks it, and throws for any response but 200 and 201. */
export async function operate(url: string): Promise<(path: string, body?: object) => Promise<Json>> {
  const login = await fetch(`${url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...closing },
    body: JSON.stringify({ password: adminPassword }),
  });
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? '';
  const { csrfToken } = (await login.json()) as { readonly csrfToken: string };
  return async (path, body) => {
    const response = await fetch(`${url}/api/admin/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { cookie, 'x-csrf-token': csrfToken, 'content-type': 'application/json', ...closing },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return parsed(text);
  };
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}
