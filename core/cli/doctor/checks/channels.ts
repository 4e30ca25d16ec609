/** Checks the addresses, certificates and keys of channels. */
import type { LoadedConfig } from '../../../config/config.ts';
import type { TlsOptions } from '../../../upstream/connections.ts';
import { probe } from '../../../upstream/probe.ts';
import { tryGateway } from '../../../try-gateway.ts';
import { findingsOf, type Check, type Examined, type Finding } from '../finding.ts';
import { withTimeLimit } from '../time-limit.ts';

const { ok, warning, error } = findingsOf('providers');

type ChannelEntry = LoadedConfig['channels'][number]['entry'];

const day = 86_400_000;

/** Connects to the addresses and proxies that channels name, and reads how long their certificates are valid. */
export const addresses: Check = {
  name: 'providers',
  async look(examined) {
    const all = examined.config.channels.flatMap(({ entry }) => addressesOf(entry));
    return (await Promise.all(all.map((address) => addressFinding(address, examined)))).flat();
  },
};

interface Address {
  readonly channel: string;
  readonly url: string;
  readonly tls?: TlsOptions;
}

/** Returns the address of a channel: that of its proxy where it has one, because the gateway connects to the proxy alone. */
function addressesOf({ spec, options }: ChannelEntry): readonly Address[] {
  const {
    id = spec.name,
    baseUrl,
    proxy,
    tls,
  } = options as {
    id?: string;
    baseUrl?: string;
    proxy?: string;
    tls?: TlsOptions;
  };
  const url = proxy ?? baseUrl;
  if (url === undefined || !URL.canParse(url)) return [];
  return [{ channel: id, url, ...(tls === undefined || proxy !== undefined ? {} : { tls }) }];
}

async function addressFinding(
  { channel, url, tls }: Address,
  examined: Examined,
): Promise<readonly Finding[]> {
  const { host } = new URL(url);
  try {
    const { certificateEnds } = await probe(url, tls);
    if (certificateEnds === undefined) return [ok(`${channel}: ${host} answers.`)];
    const days = Math.floor((certificateEnds - examined.now()) / day);
    return days < examined.certificateDays
      ? [
          warning(
            `${channel}: the certificate of ${host} ${days < 0 ? 'has expired' : days === 0 ? 'expires today' : `expires in ${shownDays(days)}`}.`,
            'Renew it, or ask its owner to renew it. Calls fail when it has expired.',
          ),
        ]
      : [ok(`${channel}: ${host} answers. Its certificate is valid for ${shownDays(days)}.`)];
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return [
      error(
        `${channel}: cannot connect to ${host}: ${why}`,
        'Check "baseUrl", "proxy" and "tls" of the channel, DNS and the firewall.',
      ),
    ];
  }
}

function shownDays(days: number): string {
  return days === 1 ? '1 day' : `${days} days`;
}

/** Maximum time for the list of a provider, in milliseconds. */
const timeoutMs = 20_000;

/** Requests the list of models from each provider, with the key of its channel. This is free. */
export const providers: Check = {
  name: 'providers',
  async look({ config, asksProviders }) {
    if (!asksProviders) return [];
    return tryGateway(config, ({ catalog }) =>
      Promise.all(
        catalog.channels.map(async ({ id, listModels }) => {
          if (listModels === undefined)
            return ok(`${id}: the provider has no list of models. Its key was not checked.`);
          try {
            const names = await withTimeLimit(listModels(), timeoutMs, `no response within ${timeoutMs} ms`);
            return ok(`${id}: the provider accepts the key and lists ${names.length} models.`);
          } catch (thrown) {
            const why = thrown instanceof Error ? thrown.message : String(thrown);
            return error(
              `${id}: cannot list the models of the provider: ${why}`,
              'Check the key of the channel. For more tests run: sluice check --live',
            );
          }
        }),
      ),
    );
  },
};
