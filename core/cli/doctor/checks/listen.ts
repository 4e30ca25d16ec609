/** Looks at who can reach the gateway. */
import { findingsOf, type Check } from '../finding.ts';

const { ok, warning } = findingsOf('listen');

/** Warns when other machines can reach the gateway and no proxy with TLS is known to stand in front of it. */
export const listen: Check = {
  name: 'listen',
  look({ config }) {
    const { listen: given, trustedProxies } = config.settings;
    const { host, port } = given;
    if (/^(127\.|localhost$|::1$)/.test(host))
      return [ok(`It listens on ${host}:${port}, for this machine alone.`)];
    if (trustedProxies.length > 0)
      return [ok(`It listens on ${host}:${port}, behind ${trustedProxies.join(', ')}.`)];
    return [
      warning(
        `It listens on ${host}:${port} without TLS, and no proxy is trusted: keys go over the network as plain text, unless something else encrypts them.`,
        'Put a proxy with TLS in front, name it in "trustedProxies", and let nobody else reach the port. See docs/guides/deploy.md.',
      ),
    ];
  },
};
