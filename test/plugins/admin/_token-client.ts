import { routes, type RouteName } from '../../../plugins/admin/routes.ts';

/** Options of a request besides its route. */
export interface TokenWords {
  readonly id?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Response as text and parsed JSON. */
export interface TokenAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Parsed by whoever looks at it.
  readonly body: Record<string, unknown>;
}

/** Sends a request to the admin API with a token instead of a cookie. */
export async function sendWithToken(
  url: string,
  token: string,
  name: RouteName,
  { id = 'none', body, headers }: TokenWords = {},
): Promise<TokenAnswer> {
  const { method, path } = routes[name];
  const response = await fetch(`${url}${path.replaceAll(/:\w+/g, encodeURIComponent(id))}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) {
    await response.body?.cancel();
    return { status: response.status, headers: response.headers, text: '', body: {} };
  }
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? (JSON.parse(text) as Record<string, unknown>) : {},
  };
}
