import { onTestFinished } from 'vitest';
import type { GatewayConfig } from 'sluice';
import cache from '../../../plugins/cache/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startProvider, type Does, type FormatName, type Provider } from './_provider.ts';

/** A gateway with the cache before one provider, for the time of a test. */
export async function started(
  options: Parameters<typeof cache>[0] = {},
  does?: Does,
  { format = 'chat-completions', ...config }: Partial<GatewayConfig> & { readonly format?: FormatName } = {},
): Promise<{ gateway: TestGateway; provider: Provider }> {
  const provider = await startProvider(format, does);
  onTestFinished(() => provider.close());
  const gateway = await startGateway({
    ...config,
    plugins: [cache(options), ...(config.plugins ?? [])],
    channels: [provider.channel, ...(config.channels ?? [])],
  });
  onTestFinished(() => gateway.close());
  return { gateway, provider };
}

/** A response of the gateway. */
export interface Got {
  readonly status: number;
  readonly cache: string | null;
  readonly body: string;
  readonly headers: Headers;
}

/** Sends a request to a path of the gateway. */
export async function post(
  { url, key }: Pick<TestGateway, 'url' | 'key'>,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Got> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    cache: response.headers.get('x-sluice-cache'),
    body: await response.text(),
    headers: response.headers,
  };
}

/** Sends a chat in chat completions. */
export const chat = (
  gateway: Pick<TestGateway, 'url' | 'key'>,
  more: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Got> =>
  post(
    gateway,
    '/v1/chat/completions',
    { model: 'm', messages: [{ role: 'user', content: 'What is new?' }], ...more },
    headers,
  );
