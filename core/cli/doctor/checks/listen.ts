/** Checks from where the gateway can be reached. */
import { findingsOf, type Check } from '../finding.ts';

const { ok, warning } = findingsOf('listen');

/** Warns when other machines can reach the gateway and the config names no trusted proxy. */
export const listen: Check = {
  name: 'listen',
  look({ config }) {
    const { listen: given, trustedProxies } = config.settings;
    const { host, port } = given;
    if (/^(127\.|localhost$|::1$)/.test(host))
      return [ok(`The gateway listens on ${host}:${port}, which only this machine can reach.`)];
    if (trustedProxies.length > 0)
      return [ok(`The gateway listens on ${host}:${port}, behind the proxies ${trustedProxies.join(', ')}.`)];
    return [
      warning(
        `The gateway listens on ${host}:${port} without TLS, and "trustedProxies" is empty. Unless something else encrypts the traffic, API keys cross the network as plain text.`,
        'Run a proxy with TLS in front, add it to "trustedProxies", and block the port for everything else. See docs/guides/deploy.md.',
      ),
    ];
  },
};
