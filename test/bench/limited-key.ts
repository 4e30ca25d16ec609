/**
 * Creates a key with a budget, rates and a concurrency limit that are never reached, by the admin API of a gateway of the bench. `hasOwners`: its
 * team and organisation have the same limits.
 */
export async function createLimitedKey(url: string, password: string, hasOwners = false): Promise<string> {
  const post = async (path: string, body: object, headers = {}): Promise<Response> => {
    const response = await fetch(`${url}/api/admin/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  const login = await post('login', { password });
  const cookie = login.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ');
  const { csrfToken } = (await login.json()) as { readonly csrfToken: string };
  const limits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 1e5 };
  const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1e15 }];
  const headers = { cookie, 'x-csrf-token': csrfToken };
  const owner = async (kind: string, organisation?: string): Promise<string> => {
    const fields = { kind, name: kind, ...limits, budgets, ...(organisation && { organisation }) };
    return ((await (await post('owners', fields, headers)).json()) as { readonly id: string }).id;
  };
  const team = hasOwners ? await owner('team', await owner('organisation')) : undefined;
  const made = await post('keys', { name: 'limited', ...limits, budgets, ...(team && { team }) }, headers);
  return ((await made.json()) as { readonly value: string }).value;
}
