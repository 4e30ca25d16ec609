import type { ChannelTools, HttpRequest } from 'sluice/internal';

/** The tools of a channel whose requests are signed one by one: `sign` gives the headers that a request carries besides its own. */
export function signing(
  tools: ChannelTools,
  sign: (request: HttpRequest, key: string) => Readonly<Record<string, string>>,
): ChannelTools {
  const { http, keys } = tools;
  return {
    ...tools,
    http: {
      ...http,
      send(call, request) {
        const key = keys[call.target?.key.index ?? 0] ?? '';
        return http.send(call, { ...request, headers: { ...request.headers, ...sign(request, key) } });
      },
    },
  };
}

/** The two halves of a key that is written `access|secret`. Throws when it has not two. */
export function halves(key: string): readonly [access: string, secret: string] {
  const [access = '', secret = '', ...more] = key.split('|').map((half) => half.trim());
  if (access === '' || secret === '' || more.length > 0)
    throw new Error('its key must be written as ACCESS|SECRET, with both halves of it.');
  return [access, secret];
}
